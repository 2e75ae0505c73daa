//! The one data structure of the references.

use std::ops::{Index, IndexMut};

/// A row-major matrix in f64, indexed by `(row, column)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    /// Always `rows * columns` long.
    data: Vec<f64>,
}

impl Matrix {
    /// A matrix of these entries, row by row.
    ///
    /// # Panics
    /// If there aren't `rows * columns` of them.
    pub fn new(rows: usize, columns: usize, data: Vec<f64>) -> Self {
        assert_eq!(data.len(), rows * columns, "a {rows} x {columns} matrix of {} entries", data.len());
        Self { rows, columns, data }
    }

    /// A matrix of these entries, row by row, widened to f64.
    ///
    /// # Panics
    /// If there aren't `rows * columns` of them.
    pub fn from_f32(rows: usize, columns: usize, data: &[f32]) -> Self {
        Self::new(rows, columns, data.iter().map(|&entry| f64::from(entry)).collect())
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
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// The entries, row by row, for change in place.
    pub fn data_mut(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// The entries of one row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// Panics unless this matrix, called `name` in the message, is `rows x columns`.
    pub(super) fn expect_shape(&self, name: &str, rows: usize, columns: usize) {
        assert!(
            (self.rows, self.columns) == (rows, columns),
            "{name} is [{}, {}], but [{rows}, {columns}] is needed",
            self.rows,
            self.columns
        );
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        &self.data[row * self.columns + column]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        &mut self.data[row * self.columns + column]
    }
}
