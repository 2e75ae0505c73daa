//! Least squares with coefficients that are not negative, for a handful of columns.

/// A column that the columns before it determine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dependent {
    /// Index of the column.
    pub(crate) column: usize,
}

/// What must remain of a column, as a share of its norm, once the columns before it are taken out.
///
/// Far above what rounding leaves of a dependent column (1e-15), far under what a useful profile has: token counts
/// that differ by one in a million.
const INDEPENDENT: f64 = 1e-9;

/// The non-negative coefficients that minimize `|columns * x - y|`.
///
/// Tries each set of columns that may be non-zero: exact, and cheap for the two or three columns of a memory model.
///
/// # Errors
/// The first column that depends on those before it.
///
/// # Panics
/// If a column isn't as long as `y`.
pub(crate) fn non_negative(columns: &[Vec<f64>], y: &[f64]) -> Result<Vec<f64>, Dependent> {
    let all: Vec<usize> = (0..columns.len()).collect();
    solve(columns, &all, y)?;
    let mut best: Option<(f64, Vec<f64>)> = None;
    // From all columns down to none, so that a tie leaves the fuller model.
    for set in (0..1_usize << columns.len()).rev() {
        let chosen: Vec<usize> = all.iter().copied().filter(|&c| set >> c & 1 == 1).collect();
        let Ok(solution) = solve(columns, &chosen, y) else { continue };
        if solution.iter().any(|&x| x < 0.0) {
            continue;
        }
        let mut x = vec![0.0; columns.len()];
        for (&column, value) in chosen.iter().zip(solution) {
            x[column] = value;
        }
        let error = squared_error(columns, &x, y);
        if best.as_ref().is_none_or(|(least, _)| error < *least) {
            best = Some((error, x));
        }
    }
    Ok(best.map_or_else(|| vec![0.0; columns.len()], |(_, x)| x))
}

/// Unconstrained least squares over the chosen columns, by modified Gram-Schmidt.
fn solve(columns: &[Vec<f64>], chosen: &[usize], y: &[f64]) -> Result<Vec<f64>, Dependent> {
    let n = chosen.len();
    let mut upper = vec![vec![0.0; n]; n];
    let mut directions: Vec<Vec<f64>> = Vec::with_capacity(n);
    let mut projected = Vec::with_capacity(n);
    let mut rest = y.to_vec();
    for (j, &column) in chosen.iter().enumerate() {
        assert_eq!(columns[column].len(), y.len(), "a column is as long as the right-hand side");
        let mut direction = columns[column].clone();
        let before = dot(&direction, &direction).sqrt();
        for (i, earlier) in directions.iter().enumerate() {
            upper[i][j] = dot(earlier, &direction);
            subtract(&mut direction, upper[i][j], earlier);
        }
        let after = dot(&direction, &direction).sqrt();
        if after <= INDEPENDENT * before {
            return Err(Dependent { column });
        }
        upper[j][j] = after;
        direction.iter_mut().for_each(|d| *d /= after);
        let along = dot(&direction, &rest);
        subtract(&mut rest, along, &direction);
        projected.push(along);
        directions.push(direction);
    }
    let mut x = projected;
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| upper[i][j] * x[j]).sum();
        x[i] = (x[i] - known) / upper[i][i];
    }
    Ok(x)
}

fn squared_error(columns: &[Vec<f64>], x: &[f64], y: &[f64]) -> f64 {
    let predicted = |row: usize| columns.iter().zip(x).map(|(column, x)| column[row] * x).sum::<f64>();
    y.iter().enumerate().map(|(row, y)| (y - predicted(row)).powi(2)).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn subtract(from: &mut [f64], factor: f64, what: &[f64]) {
    for (from, what) in from.iter_mut().zip(what) {
        *from -= factor * what;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_through_points_on_it_is_found() {
        let x = non_negative(&[vec![1.0; 3], vec![1.0, 2.0, 4.0]], &[5.0, 7.0, 11.0]).unwrap();
        assert!((x[0] - 3.0).abs() < 1e-12 && (x[1] - 2.0).abs() < 1e-12, "{x:?}");
    }

    #[test]
    fn a_falling_line_becomes_its_mean() {
        let x = non_negative(&[vec![1.0; 3], vec![0.0, 1.0, 2.0]], &[3.0, 2.0, 1.0]).unwrap();
        assert!((x[0] - 2.0).abs() < 1e-12 && x[1] == 0.0, "{x:?}");
    }

    #[test]
    fn a_negative_intercept_becomes_a_line_through_the_origin() {
        // Unconstrained: -1 + 2 x. Through the origin: sum(xy) / sum(xx) = (1 + 2 * 3 + 3 * 5) / 14.
        let x = non_negative(&[vec![1.0; 3], vec![1.0, 2.0, 3.0]], &[1.0, 3.0, 5.0]).unwrap();
        assert!(x[0] == 0.0 && (x[1] - 22.0 / 14.0).abs() < 1e-12, "{x:?}");
    }

    #[test]
    fn a_column_that_others_determine_is_named() {
        let columns = [vec![1.0; 3], vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0]];
        assert_eq!(non_negative(&columns, &[1.0; 3]), Err(Dependent { column: 2 }));
    }

    proptest! {
        #[test]
        fn no_step_from_the_solution_that_keeps_it_non_negative_lowers_the_error(
            rows in prop::collection::vec((1.0..100.0_f64, 1.0..100.0_f64, -100.0..100.0_f64), 4..12),
        ) {
            let columns = [vec![1.0; rows.len()], rows.iter().map(|r| r.0).collect(), rows.iter().map(|r| r.1).collect()];
            let y: Vec<f64> = rows.iter().map(|r| r.2).collect();
            let Ok(x) = non_negative(&columns, &y) else { return Ok(()) };
            let least = squared_error(&columns, &x, &y);
            for column in 0..3 {
                for change in [-1e-3, 1e-3] {
                    let mut moved = x.clone();
                    moved[column] = (moved[column] + change).max(0.0);
                    prop_assert!(squared_error(&columns, &moved, &y) >= least - 1e-9 * (1.0 + least));
                }
            }
        }
    }
}
