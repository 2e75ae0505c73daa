//! Strided views of f32 memory and their product.

use std::marker::PhantomData;

pub(super) use gemm::Parallelism;

/// Products of fewer multiplications than this aren't worth a second thread.
const PARALLEL_FROM: usize = 1 << 22;

/// All threads for a large product, the caller's own for a small one.
pub(super) fn threads_for(m: usize, n: usize, k: usize) -> Parallelism {
    if m * n * k < PARALLEL_FROM { Parallelism::None } else { Parallelism::Rayon(0) }
}

/// A matrix to read.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// Covers every entry that the dimensions and strides reach.
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> View<'a> {
    /// `rows` rows of `columns` entries, `row_stride` entries apart.
    pub(super) fn new(data: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        check_extent(data.len(), rows, columns, row_stride);
        Self { data, rows, columns, row_stride, column_stride: 1 }
    }

    /// Rows without gaps.
    pub(super) fn dense(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::new(data, rows, columns, columns)
    }

    pub(super) fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// A matrix to write, with rows without gaps between their entries.
pub(super) struct ViewMut<'a> {
    /// To memory that this view alone may touch, wherever its dimensions and stride reach.
    start: *mut f32,
    rows: usize,
    columns: usize,
    row_stride: usize,
    memory: PhantomData<&'a mut [f32]>,
}

// SAFETY: a view is the only way to its entries, like the `&mut [f32]` that it was made from.
unsafe impl Send for ViewMut<'_> {}

impl<'a> ViewMut<'a> {
    /// `rows` rows of `columns` entries, `row_stride` entries apart.
    pub(super) fn new(data: &'a mut [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        check_extent(data.len(), rows, columns, row_stride);
        Self { start: data.as_mut_ptr(), rows, columns, row_stride, memory: PhantomData }
    }

    /// Rows without gaps.
    pub(super) fn dense(data: &'a mut [f32], rows: usize, columns: usize) -> Self {
        Self::new(data, rows, columns, columns)
    }

    /// Bands of at most `width` columns, left to right.
    pub(super) fn column_bands(self, width: usize) -> Vec<ViewMut<'a>> {
        let band = |first: usize| Self {
            // SAFETY: `first` is under `columns`, so the start stays inside; bands share no column, hence no entry.
            start: unsafe { self.start.add(first) },
            columns: width.min(self.columns - first),
            ..self
        };
        // Without rows there is no memory to point into.
        if self.rows == 0 { Vec::new() } else { (0..self.columns).step_by(width).map(band).collect() }
    }

    /// Row `row` as a slice.
    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows);
        // SAFETY: the row lies inside by `check_extent`, and this view alone may touch it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(row * self.row_stride), self.columns) }
    }

    /// The rows `first..first + rows`, to write while `self` rests.
    pub(super) fn rows_mut(&mut self, first: usize, rows: usize) -> ViewMut<'_> {
        assert!(first + rows <= self.rows);
        // SAFETY: without rows nothing is pointed at; else the first one lies inside.
        let start = if rows == 0 { self.start } else { unsafe { self.start.add(first * self.row_stride) } };
        ViewMut { start, rows, columns: self.columns, row_stride: self.row_stride, memory: PhantomData }
    }

    /// `self = scale * lhs * rhs`, or `self += scale * lhs * rhs` if `accumulate`.
    ///
    /// # Panics
    /// If the dimensions don't match.
    pub(super) fn product(&mut self, scale: f32, lhs: View, rhs: View, accumulate: bool, threads: Parallelism) {
        assert_eq!((self.rows, self.columns), (lhs.rows, rhs.columns), "dimensions of a product");
        assert_eq!(lhs.columns, rhs.rows, "inner dimension of a product");
        if lhs.columns == 0 && accumulate {
            return;
        }
        // SAFETY: all three reach only memory that they were checked against, and only `self` is written, which nothing
        // else may touch.
        unsafe {
            gemm::gemm(
                self.rows,
                self.columns,
                lhs.columns,
                self.start,
                1,
                self.row_stride as isize,
                accumulate,
                lhs.data.as_ptr(),
                lhs.column_stride as isize,
                lhs.row_stride as isize,
                rhs.data.as_ptr(),
                rhs.column_stride as isize,
                rhs.row_stride as isize,
                1.0,
                scale,
                false,
                false,
                false,
                threads,
            );
        }
    }
}

fn check_extent(len: usize, rows: usize, columns: usize, row_stride: usize) {
    let reach = if rows == 0 || columns == 0 { 0 } else { (rows - 1) * row_stride + columns };
    assert!(columns <= row_stride || rows <= 1, "rows of {columns} entries overlap at a stride of {row_stride}");
    assert!(reach <= len, "a view of {reach} entries over {len}");
}
