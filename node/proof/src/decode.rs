//! Reads the encoded bytes of a proof, and refuses them where its readable fields contradict them.

use crate::json::{BlockFinality, HeaderJson, PROOF_FORMAT, ProofJson, ReceiptJson, ValueJson};
use alloy_primitives::{BlockHash, Bytes};
use almanac_primitives::{Header, ReceiptProof, StateKey, codec::DecodeError};
use almanac_state::{ProofDecodeError, StateProof};
use serde::Deserialize;

/// Why a text is not a proof.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// It has not the form of one.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It has that of another version.
    #[error("its format is {given:?}, this build reads {PROOF_FORMAT:?}")]
    OtherFormat {
        /// The format that it names.
        given: String,
    },
}

/// Why the bytes in a proof cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages have the words")]
pub enum MalformedProof {
    #[error("this is not a block header")]
    Header(#[source] DecodeError),
    #[error("the file contradicts its encoded header: {encoded:?}")]
    OtherHeader { encoded: Box<HeaderJson> },
    #[error(transparent)]
    Value(#[from] ProofDecodeError),
    #[error("the proof file contradicts the key of its proof, {encoded:?}")]
    OtherKey { encoded: StateKey },
    #[error("the proof file contradicts the value of its proof, {encoded}")]
    OtherValue { encoded: Bytes },
    #[error("the receipt's index is not below 2^32")]
    ReceiptIndex,
    #[error("the field finality has bytes that are not a block header")]
    FinalHeader(#[source] DecodeError),
    #[error("the field finality has no header")]
    NoFinalHeader,
    #[error(
        "the file claims that block {number} ({hash}) is final, but its headers begin with block {first_number} \
         ({first_hash})"
    )]
    OtherFinalBlock { number: u64, hash: BlockHash, first_number: u64, first_hash: BlockHash },
}

/// Headers from a block up to one that was certified, each the parent of the next, and the certificate: yet to be
/// checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalHeaders {
    /// At least one.
    pub headers: Vec<Header>,
    /// What a quorum signed about the last.
    pub certificate: Bytes,
}

/// The one field that every version has.
#[derive(Deserialize)]
struct Form {
    format: String,
}

impl ProofJson {
    /// Reads a proof.
    pub fn parse(json: &str) -> Result<Self, ParseError> {
        // The form first: a file of another version may have other fields.
        let Form { format } = serde_json::from_str(json)?;
        if format != PROOF_FORMAT {
            return Err(ParseError::OtherFormat { given: format });
        }
        Ok(serde_json::from_str(json)?)
    }

    /// The proof as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a proof has only string keys")
    }

    /// The header that came with the proof.
    pub fn decode_header(&self) -> Result<Header, MalformedProof> {
        self.header.decode()
    }

    /// The proofs of values.
    pub fn decode_values(&self) -> Result<Vec<StateProof>, MalformedProof> {
        self.values.iter().map(ValueJson::decode).collect()
    }

    /// The proof of a receipt, if there is one.
    pub fn decode_receipt(&self) -> Result<Option<ReceiptProof>, MalformedProof> {
        self.receipt.as_ref().map(ReceiptJson::decode).transpose()
    }

    /// What shows that the block is final, if the proof has it.
    pub fn decode_finality(&self) -> Result<Option<FinalHeaders>, MalformedProof> {
        self.finality.as_ref().map(BlockFinality::decode).transpose()
    }
}

impl HeaderJson {
    /// The header.
    pub fn decode(&self) -> Result<Header, MalformedProof> {
        let header = Header::decode(&self.encoded).map_err(MalformedProof::Header)?;
        let encoded = Self::from(&header);
        if *self != encoded {
            return Err(MalformedProof::OtherHeader { encoded: Box::new(encoded) });
        }
        Ok(header)
    }
}

impl ValueJson {
    fn decode(&self) -> Result<StateProof, MalformedProof> {
        let proof = StateProof::decode(&self.encoded)?;
        let Self { key, value, .. } = Self::from(&proof);
        if self.key != key {
            return Err(MalformedProof::OtherKey { encoded: proof.key });
        }
        if self.value != value {
            return Err(MalformedProof::OtherValue { encoded: value });
        }
        Ok(proof)
    }
}

impl ReceiptJson {
    fn decode(&self) -> Result<ReceiptProof, MalformedProof> {
        Ok(ReceiptProof {
            index: self.index.try_into().map_err(|_| MalformedProof::ReceiptIndex)?,
            receipt: self.encoded.clone(),
            transaction: self.transaction.clone(),
            nodes: self.nodes.clone(),
        })
    }
}

impl BlockFinality {
    fn decode(&self) -> Result<FinalHeaders, MalformedProof> {
        let headers: Result<Vec<Header>, DecodeError> =
            self.headers.iter().map(|encoded| Header::decode(encoded)).collect();
        let headers = headers.map_err(MalformedProof::FinalHeader)?;
        let first = headers.first().ok_or(MalformedProof::NoFinalHeader)?;
        let (number, hash, first_number, first_hash) =
            (self.number.to(), self.hash, first.number, first.hash());
        if (number, hash) != (first_number, first_hash) {
            return Err(MalformedProof::OtherFinalBlock { number, hash, first_number, first_hash });
        }
        Ok(FinalHeaders { headers, certificate: self.certificate.clone() })
    }
}
