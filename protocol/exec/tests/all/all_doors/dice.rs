//! Numbers that look random and are the same each time.

/// Xorshift: as good as needed, and the same on every machine.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    pub(super) fn of<T: Clone>(&mut self, list: &[T]) -> T {
        let at = self.below(list.len() as u64);
        list[usize::try_from(at).unwrap()].clone()
    }

    /// Whether one in so many is drawn.
    pub(super) fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
