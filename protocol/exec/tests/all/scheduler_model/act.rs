//! What people and runs do, with every number settled: as calldata for the chain, and as data for the model.

use crate::support::{contracts::*, cron::*};
use alloy_primitives::{Address, Bytes, U256, address, keccak256};
use alloy_sol_types::SolCall;
use almanac_primitives::addresses::CRON_REGISTRY;

/// Makes the calls that its calldata lists, with its own money.
pub const SCRIPTED: Address = address!("0x00000000000000000000000000000000000c0100");
/// Has neither code nor a key.
pub const NOBODY: Address = address!("0x00000000000000000000000000000000000c0101");
/// Signature of the counter's method: it has none, and takes any.
const METHOD: &str = "count()";

/// An order for the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub call: Call,
    pub target: Address,
    pub data: Bytes,
    pub at: U256,
    pub interval: U256,
    pub runs_max: U256,
    pub gas: U256,
    /// With options; without, the owner gets refunds and there are no options.
    pub terms: Option<(Address, U256)>,
    pub value: U256,
    /// Whether the call is given by the signature of a method.
    pub is_by_method: bool,
}

/// What a job calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Count,
    Revert,
    Burn,
    Nobody,
    Script(Vec<Act>),
}

/// A call of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    pub doing: Doing,
    /// Whether the script goes on where it fails.
    pub is_tolerated: bool,
}

/// One thing that somebody does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    Schedule(Box<Order>),
    Cancel(U256),
    TopUp(U256, U256),
    /// Done in a frame that then reverts.
    Undone(Box<Doing>),
    Fail,
}

impl Call {
    pub fn target(&self) -> Address {
        match self {
            Self::Count => COUNTER,
            Self::Revert => REVERTER,
            Self::Burn => FAILER,
            Self::Nobody => NOBODY,
            Self::Script(_) => SCRIPTED,
        }
    }

    pub fn data(&self) -> Bytes {
        match self {
            Self::Script(acts) => script(acts),
            _ => Bytes::copy_from_slice(&keccak256(METHOD)[..4]),
        }
    }
}

impl Doing {
    pub fn target(&self) -> Address {
        match self {
            Self::Schedule(_) | Self::Cancel(_) | Self::TopUp(..) => CRON_REGISTRY,
            Self::Undone(_) => FORWARD_AND_REVERT,
            Self::Fail => REVERTER,
        }
    }

    pub fn value(&self) -> U256 {
        match self {
            Self::Schedule(order) => order.value,
            Self::TopUp(_, amount) => *amount,
            Self::Undone(doing) => doing.value(),
            Self::Cancel(_) | Self::Fail => U256::ZERO,
        }
    }

    pub fn data(&self) -> Bytes {
        match self {
            Self::Schedule(order) => order.data(),
            Self::Cancel(id) => cancel_data(*id),
            Self::TopUp(id, _) => top_up_data(*id),
            Self::Undone(doing) => to(doing.target(), &doing.data()),
            Self::Fail => Bytes::new(),
        }
    }
}

impl Order {
    fn data(&self) -> Bytes {
        let Self { target, at, interval, runs_max, gas, .. } = *self;
        let data = self.data.clone();
        match self.terms {
            None if self.is_by_method => ICronRegistry::scheduleCall {
                target,
                method: METHOD.into(),
                args: Bytes::new(),
                nextRunAt: at,
                intervalSec: interval,
                maxRuns: runs_max,
                gasLimit: gas,
            }
            .abi_encode(),
            None => ICronRegistry::scheduleCalldataCall {
                target,
                data,
                nextRunAt: at,
                intervalSec: interval,
                maxRuns: runs_max,
                gasLimit: gas,
            }
            .abi_encode(),
            Some((refund_to, options)) => ICronRegistry::scheduleWithCall {
                target,
                data,
                nextRunAt: at,
                intervalSec: interval,
                maxRuns: runs_max,
                gasLimit: gas,
                refundTo: refund_to,
                options,
            }
            .abi_encode(),
        }
        .into()
    }
}

/// Where the data of a call begins, behind target, value, whether it must succeed, length and next call.
const CALL_HEAD: usize = 5 * 32;

/// Calldata for the scripted contract.
pub fn script(acts: &[Act]) -> Bytes {
    let mut out = Vec::new();
    for Act { doing, is_tolerated } in acts {
        let data = doing.data();
        let next = out.len() + CALL_HEAD + data.len();
        out.extend(doing.target().into_word());
        let words = [doing.value(), U256::from(!is_tolerated), U256::from(data.len()), U256::from(next)];
        out.extend(words.iter().flat_map(|word| word.to_be_bytes::<32>()));
        out.extend(&data);
    }
    out.into()
}

/// Code of the scripted contract.
pub fn scripted_code() -> Bytes {
    // [at]: while at < calldatasize
    let mut code = vec![0x5f, 0x5b, 0x36, 0x81, 0x10, 0x60, 9, 0x57, 0x00, 0x5b];
    // calldatacopy(0, at + 160, length)
    code.extend([0x80, 0x60, 96, 0x01, 0x35, 0x81, 0x60, 160, 0x01, 0x5f, 0x37]);
    // call(gas, target, value, 0, length, 0, 0)
    code.extend([0x5f, 0x5f, 0x82, 0x60, 96, 0x01, 0x35, 0x5f, 0x84, 0x60, 32, 0x01, 0x35, 0x85, 0x35]);
    code.extend([0x5a, 0xf1]);
    // if it failed and must not: revert(0, 0)
    code.extend([0x81, 0x60, 64, 0x01, 0x35, 0x15, 0x17]);
    let next = u8::try_from(code.len() + 6).unwrap();
    code.extend([0x60, next, 0x57, 0x5f, 0x5f, 0xfd, 0x5b]);
    // at = next
    code.extend([0x60, 128, 0x01, 0x35, 0x60, 1, 0x56]);
    code.into()
}
