//! What nodes agree on: state views, batches, roots
