//! What triggers a schedule, as data.

/// What triggers a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trigger {
    /// Its due time.
    Time = 1,
    /// The last missing signature.
    Signatures = 2,
    /// Its due time, if all have signed by then.
    SignaturesByTime = 3,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Time, Self::Signatures, Self::SignaturesByTime];

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|trigger| *trigger as u8 == number)
    }
}
