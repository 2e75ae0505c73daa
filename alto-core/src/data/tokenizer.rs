//! A Hugging Face tokenizer, and the tokens that begin and end a text.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::error::DataError;

/// A tokenizer, with the token that begins a text and the one that ends it.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    begin: Vec<u32>,
    end: Option<u32>,
}

impl Tokenizer {
    /// Reads `tokenizer.json` in a model's directory, and which tokens begin and end a text.
    ///
    /// Those are, in this order: what the tokenizer itself puts in front of a text; `bos_token` and `eos_token` of
    /// `tokenizer_config.json`, then of `special_tokens_map.json`, null being none; `bos_token_id` and `eos_token_id`
    /// (the first, if several) of `config.json`.
    ///
    /// # Errors
    /// When a file can't be read or isn't what it should be, or names a token that the tokenizer doesn't have.
    pub fn read(dir: &Path) -> Result<Self, DataError> {
        let path = dir.join("tokenizer.json");
        let bytes = fs::read(&path).map_err(|source| DataError::Io { path: path.clone(), source })?;
        let not_one = |source| DataError::Tokenizer { path: path.clone(), source };
        let mut inner = tokenizers::Tokenizer::from_bytes(bytes).map_err(not_one)?;
        // Either may be switched on in the file and would change every row silently.
        inner.with_truncation(None).map_err(not_one)?.with_padding(None);
        let mut tokenizer = Self { inner, begin: vec![], end: None };
        tokenizer.begin = tokenizer.own_begin()?;
        if tokenizer.begin.is_empty() {
            tokenizer.begin.extend(tokenizer.special(dir, "bos_token")?);
        }
        tokenizer.end = tokenizer.special(dir, "eos_token")?;
        Ok(tokenizer)
    }

    /// The text's tokens, and nothing in front or behind.
    ///
    /// # Errors
    /// When the tokenizer has no token for a part of the text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, DataError> {
        self.encode_with(text, false)
    }

    /// The tokens of a prompt and those of its completion, the tokens that begin and end a text included.
    ///
    /// The prompt is tokenized alone, as it is when the model is used. The completion's tokens are those that follow
    /// in the tokens of both texts joined, or, where a token would straddle the two, those of the completion alone. A
    /// prompt that already begins with the beginning token, or a completion that ends with the ending one, gets no
    /// second.
    ///
    /// # Errors
    /// As [`encode`](Self::encode), and when the completion gives no token.
    pub fn encode_pair(&self, prompt: &str, completion: &str) -> Result<(Vec<u32>, Vec<u32>), DataError> {
        let mut first = self.encode(prompt)?;
        let joined = self.encode(&[prompt, completion].concat())?;
        let mut second = match joined.strip_prefix(first.as_slice()) {
            Some(rest) => rest.to_vec(),
            None => self.encode(completion)?,
        };
        if second.is_empty() {
            return Err(DataError::NoTokens { text: completion.chars().take(40).collect() });
        }
        if !first.starts_with(&self.begin) {
            first.splice(0..0, self.begin.iter().copied());
        }
        if let Some(end) = self.end.filter(|end| second.last() != Some(end)) {
            second.push(end);
        }
        Ok((first, second))
    }

    /// One more than the largest token id.
    pub fn vocabulary(&self) -> usize {
        self.inner.get_vocab(true).into_values().max().map_or(0, |largest| largest as usize + 1)
    }

    /// The tokens put in front of a prompt: mostly one or none.
    pub fn begin(&self) -> &[u32] {
        &self.begin
    }

    /// The token put behind a completion.
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    fn encode_with(&self, text: &str, special: bool) -> Result<Vec<u32>, DataError> {
        let encoding = self
            .inner
            .encode_fast(text, special)
            .map_err(|source| DataError::Encode { text: text.chars().take(40).collect(), source })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// What the tokenizer's own post-processor puts in front of a text.
    fn own_begin(&self) -> Result<Vec<u32>, DataError> {
        // A tokenizer of few words may not know this one, and has no such post-processor then.
        let (Ok(plain), Ok(mut whole)) = (self.encode_with("a", false), self.encode_with("a", true)) else {
            return Ok(vec![]);
        };
        let begin = whole.windows(plain.len().max(1)).position(|window| window == plain).unwrap_or(0);
        whole.truncate(begin);
        Ok(whole)
    }

    fn special(&self, dir: &Path, key: &str) -> Result<Option<u32>, DataError> {
        for file in ["tokenizer_config.json", "special_tokens_map.json"] {
            let path = dir.join(file);
            let Some(value) = read_object(&path)?.and_then(|mut map| map.remove(key)) else { continue };
            if value.is_null() {
                return Ok(None);
            }
            let token = value.as_str().or_else(|| value.get("content")?.as_str());
            let id = token.and_then(|token| self.inner.token_to_id(token));
            let wrong = || DataError::SpecialToken { path, key: key.to_owned(), value: value.to_string() };
            return id.map(Some).ok_or_else(wrong);
        }
        let (path, key) = (dir.join("config.json"), format!("{key}_id"));
        let Some(value) = read_object(&path)?.and_then(|mut map| map.remove(&key)) else { return Ok(None) };
        if value.is_null() {
            return Ok(None);
        }
        let id = value.as_u64().or_else(|| value.get(0)?.as_u64()).and_then(|id| u32::try_from(id).ok());
        let known = id.filter(|&id| self.inner.id_to_token(id).is_some());
        known.map(Some).ok_or_else(|| DataError::SpecialToken { path, key, value: value.to_string() })
    }
}

/// The file's JSON object, or `None` if there is no such file.
fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, DataError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DataError::Io { path: path.to_owned(), source }),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|source| DataError::Json { path: path.to_owned(), source })
}
