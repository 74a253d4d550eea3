//! The pool seen from outside: its rules one by one, against a dull version, and at full size.

mod dull;
mod orderless;
mod random;
mod rules;
mod scale;
mod signing;
