//! `swiglu` against its reference.

use alto_kernels::reference::{self, Matrix};
use alto_kernels::swiglu;

use crate::compare::{assert_close, assert_equal};
use crate::data::Draws;
use crate::device::{Layout, Leaf, backward, dtype, matrix, tensor, tensor2};
use crate::shapes::shapes;
use crate::tolerance::{SWIGLU, largest, rounded, smallest};

/// `y`, `dgate` and `dup`.
type Outputs = [(&'static str, Matrix); 3];

fn fast(gate: &Matrix, up: &Matrix, dy: &Matrix, layout: Layout) -> Outputs {
    let leaf = |m: &Matrix| Leaf::new(m, [m.rows(), m.columns()], layout);
    let (gate, up) = (leaf(gate), leaf(up));
    let y = swiglu(gate.view(), up.view());
    let gradients = backward(y.clone(), dy, layout);
    let gradient = |leaf: &Leaf<2>| leaf.gradient(&gradients).expect("asked for");
    [("y", matrix(y)), ("dgate", gradient(&gate)), ("dup", gradient(&up))]
}

fn plain(gate: &Matrix, up: &Matrix, dy: &Matrix) -> Outputs {
    let (dgate, dup) = reference::swiglu_backward(gate, up, dy);
    [("y", reference::swiglu(gate, up)), ("dgate", dgate), ("dup", dup)]
}

#[test]
fn agrees_with_the_reference_in_any_layout() {
    for shape in shapes() {
        let mut draws = Draws::new(51);
        let [mut gate, up, dy] = std::array::from_fn(|_| draws.matrix(shape.tokens(), shape.d_out));
        // Gates between -8 and 8, so that some are nearly shut and some nearly open.
        gate.data_mut().iter_mut().for_each(|gate| *gate *= 8.0);
        let expected = plain(&gate, &up, &dy);
        for layout in Layout::ALL {
            let got = fast(&gate, &up, &dy, layout);
            for ((name, got), (_, expected)) in got.iter().zip(&expected) {
                assert_close(&format!("{}, {layout:?}: {name}", shape.name), got, expected, SWIGLU.over(1));
            }
        }
    }
}

/// Each one alone, so that none hides behind a larger one.
#[test]
fn extreme_gates_are_shut_or_open() {
    for extreme in [-1e30, -500.0, -90.0, -88.0, -87.0, -20.0, -1e-30, 0.0, 1e-30, 20.0, 90.0, 500.0, 1e30] {
        let extreme = rounded(f64::from(extreme as f32), dtype());
        if extreme.abs() > largest(dtype()) {
            continue;
        }
        let [gate, up, dy] = [extreme, -0.75, 0.5].map(|entry| Matrix::new(1, 1, vec![entry]));
        let (got, expected) = (fast(&gate, &up, &dy, Layout::Dense), plain(&gate, &up, &dy));
        for ((name, got), (_, expected)) in got.iter().zip(&expected) {
            let (got, expected) = (got[(0, 0)], expected[(0, 0)]);
            // The logistic function may stop at the smallest normal f32 instead of zero, and what is stored as well.
            let allowed = SWIGLU.over(1) * expected.abs()
                + f64::from(f32::MIN_POSITIVE) * (1.0 + f64::abs(extreme))
                + smallest(dtype());
            assert!((got - expected).abs() <= allowed, "{name} at {extreme:e}: got {got:e}, expected {expected:e}");
        }
    }
}

#[test]
fn nan_stays_in_its_entry() {
    for shape in shapes().iter().filter(|shape| shape.tokens() > 0) {
        let mut draws = Draws::new(52);
        let [mut gate, up, dy] = std::array::from_fn(|_| draws.matrix(shape.tokens(), shape.d_out));
        let mut expected = fast(&gate, &up, &dy, Layout::Dense);
        let sick = gate.data().len() / 2;
        gate.data_mut()[sick] = f64::NAN;
        let got = fast(&gate, &up, &dy, Layout::Dense);
        for ((name, got), (_, expected)) in got.iter().zip(&mut expected) {
            expected.data_mut()[sick] = f64::NAN;
            assert_equal(&format!("{}: {name}", shape.name), got, expected);
        }
    }
}

#[test]
fn only_what_asks_gets_a_gradient() {
    let mut draws = Draws::new(53);
    let [gate, up, dy] = std::array::from_fn(|_| draws.matrix(3, 5));
    let [_, (_, dgate), (_, dup)] = fast(&gate, &up, &dy, Layout::Dense);
    let (asking, silent) = (tensor2(&gate).require_grad(), tensor2(&up));
    let gradients = backward(swiglu(asking.clone(), silent.clone()), &dy, Layout::Dense);
    assert!(silent.grad(&gradients).is_none());
    assert_equal("dgate", &asking.grad(&gradients).map(matrix).expect("asked for"), &dgate);

    let (silent, asking) = (tensor2(&gate), tensor2(&up).require_grad());
    let gradients = backward(swiglu(silent.clone(), asking.clone()), &dy, Layout::Dense);
    assert!(silent.grad(&gradients).is_none());
    assert_equal("dup", &asking.grad(&gradients).map(matrix).expect("asked for"), &dup);
}

#[test]
#[should_panic(expected = "gate and up have the same shape")]
fn unequal_shapes_panic() {
    swiglu(tensor(&Matrix::zeros(2, 3), [2, 3]), tensor(&Matrix::zeros(3, 2), [3, 2]));
}
