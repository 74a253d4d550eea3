//! JSON-RPC over HTTP
