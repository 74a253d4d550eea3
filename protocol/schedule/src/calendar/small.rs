//! Runs the tests of `tests/` again with small nodes, so that small trees are deep.

#[path = "../../tests/support/damage.rs"]
mod damage;
#[path = "../../tests/support/model.rs"]
mod model;
#[path = "../../tests/support/orders.rs"]
mod orders;
#[path = "../../tests/support/mod.rs"]
mod support;
