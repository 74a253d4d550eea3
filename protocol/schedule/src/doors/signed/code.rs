//! Response codes, by Hedera's numbers.

use std::fmt;

/// What an operation answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Code {
    /// `TRANSACTION_EXPIRED`: the deadline of a signature has passed.
    DeadlinePassed = 4,
    /// `INVALID_SIGNATURE`: a signature is not one of its key over this schedule, or the admin key is not satisfied.
    InvalidSignature = 7,
    /// `MEMO_TOO_LONG`.
    MemoTooLong = 8,
    /// `INSUFFICIENT_TX_FEE`: the value does not cover the price of a timed schedule, or its cap is below what another
    /// payer would return.
    InsufficientFee = 9,
    /// `INSUFFICIENT_PAYER_BALANCE`.
    InsufficientPayerBalance = 10,
    /// `BUSY`: the throttle, or one transaction triggers too many.
    Busy = 12,
    /// `NOT_SUPPORTED`.
    NotSupported = 13,
    /// `INVALID_CONTRACT_ID`: a call has no target.
    InvalidTarget = 16,
    /// `UNKNOWN`: a fault of the chain's own.
    Unknown = 21,
    /// `SUCCESS`.
    Success = 22,
    /// `INSUFFICIENT_GAS`: the run used up its gas.
    InsufficientGas = 30,
    /// `CONTRACT_REVERT_EXECUTED`: the run failed.
    Reverted = 33,
    /// `BAD_ENCODING`: bytes are not a key.
    BadEncoding = 38,
    /// `INVALID_TRANSACTION_BODY`.
    InvalidBody = 50,
    /// `MAX_GAS_LIMIT_EXCEEDED`: the gas limit is outside its bounds.
    GasLimit = 111,
    /// `INVALID_SCHEDULE_ID`.
    InvalidScheduleId = 201,
    /// `SCHEDULE_IS_IMMUTABLE`: there is no admin key.
    Immutable = 202,
    /// `NO_NEW_VALID_SIGNATURES`.
    NoNewSignatures = 205,
    /// `UNRESOLVABLE_REQUIRED_SIGNERS`: the required keys have too many leaves.
    TooManySigners = 206,
    /// `SOME_SIGNATURES_WERE_INVALID`: a key that is not required.
    KeyNotRequired = 208,
    /// `SCHEDULE_ALREADY_DELETED`.
    Deleted = 212,
    /// `SCHEDULE_ALREADY_EXECUTED`.
    Executed = 213,
    /// `MESSAGE_SIZE_TOO_LARGE`.
    TooLarge = 214,
    /// `SCHEDULE_EXPIRATION_TIME_TOO_FAR_IN_FUTURE`.
    TooFar = 306,
    /// `SCHEDULE_EXPIRATION_TIME_MUST_BE_HIGHER_THAN_CONSENSUS_TIME`.
    NotAfterNow = 307,
    /// `SCHEDULE_EXPIRED`.
    Expired = 314,
    /// `SCHEDULE_EXPIRY_IS_BUSY`: no room is left in the second.
    ExpiryIsBusy = 370,
    /// Ours: the signature is for an earlier round of this schedule.
    RoundPassed = 10_001,
}

impl Code {
    /// Its number.
    pub fn number(self) -> i64 {
        (self as u16).into()
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} ({})", self.number())
    }
}
