//! The JSON shapes of Ethereum's API, where ours differ from alloy's or are simpler.

mod block;
mod log;
mod native;
mod otterscan;
mod receipt;
mod schedule;
mod shown_nonce;
mod shown_type;
mod transaction;
mod version;

pub use almanac_proof::{RpcScheduleId, RpcTime, time};
pub use block::{RpcBlock, RpcHeader};
pub use log::RpcLog;
pub(crate) use native::{RpcNativeCall, RpcReplayProtector};
pub use otterscan::{
    DatedReceipt, Height, Number, OtsBlockDetails, OtsBlockTransactions, OtsContractCreator, OtsPage,
};
pub use receipt::RpcReceipt;
pub use schedule::RpcScheduleRef;
pub use transaction::RpcTransaction;
pub(crate) use transaction::{encoded_transaction, user_transaction};
pub use version::Version;
