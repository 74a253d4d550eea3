//! Derived, deletable lookups that answer RPC
