//! A matrix on the host, the currency between files, job states and backends.

/// Row-major `[rows, columns]` in f32.
#[derive(Clone, PartialEq, Default)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    /// Always `rows * columns` long.
    data: Vec<f32>,
}

impl Matrix {
    /// A matrix of these entries, row by row.
    ///
    /// # Panics
    /// If there aren't `rows * columns` of them.
    pub fn new(rows: usize, columns: usize, data: Vec<f32>) -> Self {
        assert_eq!(data.len(), rows * columns, "a {rows} x {columns} matrix of {} entries", data.len());
        Self { rows, columns, data }
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, columns, data: vec![0.0; rows * columns] }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The entries, row by row.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The entries, row by row, for change in place.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The entries, row by row.
    pub fn into_data(self) -> Vec<f32> {
        self.data
    }

    /// Rows and columns swapped.
    pub fn transposed(&self) -> Self {
        let data =
            (0..self.columns).flat_map(|c| (0..self.rows).map(move |r| self.data[r * self.columns + c])).collect();
        Self { rows: self.columns, columns: self.rows, data }
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix[{}, {}]", self.rows, self.columns)
    }
}
