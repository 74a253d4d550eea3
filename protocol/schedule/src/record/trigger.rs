//! What makes a schedule run, as data.

/// What makes a schedule run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trigger {
    /// A time that has come.
    Time = 1,
    /// The last signature that was missing.
    Signatures = 2,
    /// A time that has come, if all have signed by then.
    SignaturesByTime = 3,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Time, Self::Signatures, Self::SignaturesByTime];

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| *trigger as u8 == number)
    }
}
