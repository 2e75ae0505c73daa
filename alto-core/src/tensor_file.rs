//! One safetensors file: its header is read at once, a tensor only when it is asked for.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

/// Bytes in front of the header that hold its length.
const PREFIX: u64 = 8;
/// The longest header that the format allows, in bytes.
const LONGEST_HEADER: u64 = 100_000_000;
/// Bytes read from the file at a time.
const CHUNK: usize = 1 << 20;

/// The tensors of one safetensors file, read one at a time as f32.
#[derive(Debug, Clone)]
pub struct TensorFile {
    path: PathBuf,
    /// Where the tensors' bytes start; the file reaches exactly to the end of the last tensor.
    start: u64,
    tensors: BTreeMap<String, TensorInfo>,
}

impl TensorFile {
    /// Reads and checks the header, and that the file is as long as the header says.
    ///
    /// # Errors
    /// When the file is missing, cut off or isn't a safetensors file.
    pub fn open(path: &Path) -> Result<Self, TensorFileError> {
        let io = |source| TensorFileError::Io { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(io)?;
        let found = file.metadata().map_err(io)?.len();
        let mut prefix = [0; PREFIX as usize];
        if found < PREFIX {
            return Err(TensorFileError::Length { path: path.to_owned(), found, expected: PREFIX });
        }
        file.read_exact(&mut prefix).map_err(io)?;
        let length = u64::from_le_bytes(prefix);
        // Nothing is allocated for a header before it is known to be there.
        if length > LONGEST_HEADER || length > found - PREFIX {
            return Err(TensorFileError::HeaderLength { path: path.to_owned(), length, found });
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(io)?;
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|source| TensorFileError::Header { path: path.to_owned(), source })?;
        let start = PREFIX + length;
        let expected = start.saturating_add(header.data_len() as u64);
        if found != expected {
            return Err(TensorFileError::Length { path: path.to_owned(), found, expected });
        }
        let tensors = header.tensors().into_iter().map(|(name, info)| (name, info.clone())).collect();
        Ok(Self { path: path.to_owned(), start, tensors })
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of its tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The tensor's shape, if the file has it.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|info| info.shape.as_slice())
    }

    /// The tensor's entries in row-major order, converted to f32 from f32, f16 or bf16.
    ///
    /// Beside the result it holds about a megabyte at a time.
    ///
    /// # Errors
    /// When the file lacks the tensor, or it has another shape, another dtype or an entry that isn't finite.
    pub fn tensor(&self, name: &str, expected: &[usize]) -> Result<Vec<f32>, TensorFileError> {
        let (path, tensor) = (|| self.path.clone(), || name.to_owned());
        let Some(info) = self.tensors.get(name) else {
            return Err(TensorFileError::MissingTensor { path: path(), tensor: tensor() });
        };
        if info.shape != expected {
            let (found, expected) = (info.shape.clone(), expected.to_vec());
            return Err(TensorFileError::Shape { path: path(), tensor: tensor(), found, expected });
        }
        let (width, convert): (usize, Convert) = match info.dtype {
            Dtype::F32 => (4, from_f32),
            Dtype::F16 => (2, from_f16),
            Dtype::BF16 => (2, from_bf16),
            other => {
                return Err(TensorFileError::Dtype { path: path(), tensor: tensor(), dtype: other.to_string() });
            }
        };
        let values = self.read(info, width, convert).map_err(|source| TensorFileError::Io { path: path(), source })?;
        match values.iter().position(|x| !x.is_finite()) {
            Some(index) => {
                Err(TensorFileError::NotFinite { path: path(), tensor: tensor(), index, value: values[index] })
            }
            None => Ok(values),
        }
    }

    fn read(&self, info: &TensorInfo, width: usize, convert: Convert) -> io::Result<Vec<f32>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.start + info.data_offsets.0 as u64))?;
        let mut values = vec![0.0; (info.data_offsets.1 - info.data_offsets.0) / width];
        let mut bytes = vec![0; CHUNK.min(values.len() * width)];
        for part in values.chunks_mut(CHUNK / width) {
            let bytes = &mut bytes[..part.len() * width];
            file.read_exact(bytes)?;
            convert(bytes, part);
        }
        Ok(values)
    }
}

/// Little-endian numbers to as many f32.
type Convert = fn(&[u8], &mut [f32]);

fn from_f32(bytes: &[u8], values: &mut [f32]) {
    for (value, &bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
        *value = f32::from_le_bytes(bytes);
    }
}

fn from_f16(bytes: &[u8], values: &mut [f32]) {
    let halves: Vec<_> = bytes.as_chunks().0.iter().map(|&bytes| f16::from_le_bytes(bytes)).collect();
    halves.convert_to_f32_slice(values);
}

fn from_bf16(bytes: &[u8], values: &mut [f32]) {
    let halves: Vec<_> = bytes.as_chunks().0.iter().map(|&bytes| bf16::from_le_bytes(bytes)).collect();
    halves.convert_to_f32_slice(values);
}

/// Why a tensor can't be had from a safetensors file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorFileError {
    /// The file can't be read.
    #[error("can't read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A header that the file has no room for.
    #[error(
        "{path} says that its header has {length} bytes, but the file has {found} and a header at most \
         {LONGEST_HEADER}: it is cut off or not a safetensors file"
    )]
    HeaderLength {
        /// The file.
        path: PathBuf,
        /// Bytes that the header is said to have.
        length: u64,
        /// Bytes that the file has.
        found: u64,
    },
    /// A header that isn't one.
    #[error("{path} has no valid safetensors header")]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A file that is cut off or has something behind its end.
    #[error("{path} has {found} bytes, expected {expected}: it is cut off or damaged, copy or download it again")]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes that it has.
        found: u64,
        /// Bytes that its header asks for.
        expected: u64,
    },
    /// No such tensor.
    #[error("{path} has no tensor {tensor}")]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor of another shape than the model's or adapter's settings ask for.
    #[error("{tensor} in {path} has the shape {found:?}, expected {expected:?}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape asked for.
        expected: Vec<usize>,
    },
    /// A number format that isn't read.
    #[error("{tensor} in {path} has the dtype {dtype}, expected F32, F16 or BF16")]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// Its dtype, as the file calls it.
        dtype: String,
    },
    /// A weight that is infinite or not a number.
    #[error("{tensor} in {path} is {value} at index {index}, expected finite numbers")]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// Index of the first such entry, in row-major order.
        index: usize,
        /// The entry.
        value: f32,
    },
}
