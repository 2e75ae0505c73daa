//! Recipes; see the `examples` of this package.
