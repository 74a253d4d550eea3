//! Gets a proof from a running node, and waits until the node proves its block final.

use crate::http::{CallError, Endpoint};
use almanac_proof::ProofJson;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::{
    io::Write as _,
    time::{Duration, Instant},
};

/// Longest time for one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// Longest time until a block that the node has is certified, or one above it.
const FINALITY_PATIENCE: Duration = Duration::from_secs(20);

/// Time between two looks for a certificate.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// JSON-RPC's code for a method that a node does not serve.
const METHOD_NOT_FOUND: i64 = -32_601;

/// Asks a node for a proof, and for what shows that its block is final. A chain without validators has none; that is
/// said on standard error.
pub(super) fn prove(node: &Endpoint, wanted: &Value) -> anyhow::Result<ProofJson> {
    let proof = node.call("almanac_getProof", &json!([wanted]), ANSWER_PATIENCE)?;
    let proof = ProofJson::parse(&proof.to_string()).context("the node's proof cannot be read")?;
    match find_finality(node, proof.decode_header()?.number)? {
        Some(finality) => {
            let finality = serde_json::from_value(finality)
                .context("the node's answer about finality cannot be read")?;
            Ok(ProofJson { finality: Some(finality), ..proof })
        }
        None => {
            // Whoever closed standard error does not want to know.
            let _ = writeln!(
                std::io::stderr(),
                "almanac: the chain has no validators, so nothing proves its blocks final: check the proof \
                 with --block-hash"
            );
            Ok(proof)
        }
    }
}

fn find_finality(node: &Endpoint, number: u64) -> anyhow::Result<Option<Value>> {
    let begin = Instant::now();
    loop {
        match node.call("almanac_getFinality", &json!([format!("{number:#x}")]), ANSWER_PATIENCE) {
            Ok(Value::Null) if begin.elapsed() < FINALITY_PATIENCE => std::thread::sleep(LOOK_EVERY),
            Ok(Value::Null) => {
                bail!(
                    "the node did not prove block {number} final within {FINALITY_PATIENCE:?}: try again later"
                )
            }
            Ok(finality) => return Ok(Some(finality)),
            Err(CallError::Refused { code: METHOD_NOT_FOUND, .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}
