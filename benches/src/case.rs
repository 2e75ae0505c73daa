//! Ways to compute the same thing, checked against one another before anything is timed.

use burn::tensor::Tensor;

use crate::random::Random;

/// Computes the output and, of a pass that goes backward, the gradients of all inputs, each flat.
pub type Run = Box<dyn Fn() -> Vec<Tensor<1>>>;

/// How far apart two ways may be, relative to the largest entry: sums over a few thousand products in f32, in any order.
const TOLERANCE: f32 = 3e-5;

/// One kernel at one size.
pub struct Case {
    /// Kernel, pass and size.
    pub name: String,
    /// The kernel.
    pub ours: Run,
    /// The same from Burn's own operations.
    pub plain: Run,
    /// The part of the work that no kernel can save, if there is one to compare with.
    pub floor: Option<Run>,
}

impl Case {
    /// Checks that both ways give the same.
    ///
    /// # Panics
    /// If they don't.
    pub fn check(&self) {
        let (ours, plain) = ((self.ours)(), (self.plain)());
        assert_eq!(ours.len(), plain.len(), "{}: number of results", self.name);
        for (index, (ours, plain)) in ours.into_iter().zip(plain).enumerate() {
            let [ours, plain] = [ours, plain].map(|tensor| tensor.to_data().try_into_vec::<f32>().expect("f32"));
            assert_eq!(ours.len(), plain.len(), "{}: entries of result {index}", self.name);
            let allowed = TOLERANCE * plain.iter().fold(0.0f32, |largest, entry| largest.max(entry.abs()));
            let wrong = |i: &usize| ours[*i].is_nan() || (ours[*i] - plain[*i]).abs() > allowed;
            let differing: Vec<usize> = (0..ours.len()).filter(wrong).collect();
            let distance = |i: &usize| (ours[*i] - plain[*i]).abs();
            if let Some(&worst) = differing.iter().max_by(|a, b| distance(a).total_cmp(&distance(b))) {
                panic!(
                    "{}: {} of {} entries of result {index} differ by more than {allowed:.1e}, most at {worst}: got {}, expected {}",
                    self.name,
                    differing.len(),
                    ours.len(),
                    ours[worst],
                    plain[worst]
                );
            }
        }
    }
}

/// A pass that only goes forward.
pub(crate) fn forward<const D: usize>(compute: impl Fn() -> Tensor<D> + 'static) -> Run {
    Box::new(move || vec![flat(compute())])
}

/// A pass that goes forward and backward, from a random gradient of the output.
///
/// `compute` gets the inputs as leaves of a graph, all of rank `I`.
pub(crate) fn forward_backward<const I: usize, const D: usize>(
    inputs: Vec<Tensor<I>>,
    compute: impl Fn(Vec<Tensor<I>>) -> Tensor<D> + 'static,
) -> Run {
    let shape = compute(inputs.clone()).dims();
    let slope = Random(99).tensor(shape, 1.0);
    Box::new(move || {
        let leaves: Vec<Tensor<I>> = inputs.iter().map(|x| Tensor::from_inner(x.clone()).require_grad()).collect();
        let output = compute(leaves.clone());
        let value = output.clone().inner();
        let mut gradients = (output * Tensor::from_inner(slope.clone())).sum().backward();
        let gradient = |leaf: &Tensor<I>| flat(leaf.grad_remove(&mut gradients).expect("every input has a gradient"));
        std::iter::once(flat(value)).chain(leaves.iter().map(gradient).collect::<Vec<_>>()).collect()
    })
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let entries = tensor.dims().iter().product::<usize>();
    tensor.reshape([entries])
}
