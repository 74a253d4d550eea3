//! What a block is planned to be.

use super::*;

/// One block.
#[derive(Clone, Debug)]
pub(super) struct BlockPlan {
    pub(super) actions: Vec<Action>,
    pub(super) runs: Vec<RunPlan>,
    pub(super) fee_recipient: Address,
    pub(super) milliseconds: u64,
    pub(super) is_reversed: bool,
}

/// One signed transaction.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) sender: usize,
    pub(super) form: Form,
    pub(super) what: What,
    pub(super) amount: Amount,
    pub(super) gas: GasLimit,
    pub(super) nonce: i64,
    pub(super) price: Price,
    pub(super) is_doubled: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Form {
    Legacy,
    Eip2930(AccessList),
    Eip1559,
    Eip7702(Vec<Delegation>),
    Native(NativeForm),
}

/// What is special about a native transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct NativeForm {
    /// A nonce, and the seconds until it expires.
    pub(super) orderless: Option<(u64, u64)>,
    /// A second call.
    pub(super) further: Option<Address>,
    pub(super) payer: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Delegation {
    pub(super) authority: usize,
    pub(super) delegate: Address,
    pub(super) flaw: Option<Flaw>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Flaw {
    Nonce,
    Chain,
    Signature,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Call(Address, Bytes),
    Create(Init),
}

/// What a creation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Init {
    Deploy,
    Nothing,
    Die(Address),
    Burn,
    Revert,
    OutOfGas,
    Invalid,
    BadJump,
    Underflow,
    OutOfOffset,
    TooLarge,
    StartsWithEf,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Amount {
    Nothing,
    Little(u64),
    Whole,
    TooMuch,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum GasLimit {
    Least,
    Extra(u64),
    Below,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Price {
    Above(u64),
    Base,
    BelowBase,
}

/// One run that is due.
#[derive(Clone, Debug)]
pub(super) struct RunPlan {
    pub(super) lane: Lane,
    pub(super) from: Address,
    pub(super) target: Address,
    pub(super) input: Bytes,
    pub(super) amount: Amount,
    pub(super) gas: u64,
    pub(super) steps: u64,
}
