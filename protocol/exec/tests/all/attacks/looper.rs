//! A contract that does what an attacker does: it pays for its memory once, and then makes the same call with it until
//! its gas is gone.

use alloy_primitives::{Address, Bytes, U256};

/// How a contract calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Call,
    StaticCall,
    DelegateCall,
    CallCode,
}

impl Scheme {
    pub const ALL: [Self; 4] = [Self::Call, Self::StaticCall, Self::DelegateCall, Self::CallCode];

    fn opcode(self) -> u8 {
        match self {
            Self::Call => 0xf1,
            Self::CallCode => 0xf2,
            Self::DelegateCall => 0xf4,
            Self::StaticCall => 0xfa,
        }
    }

    fn has_value(self) -> bool {
        matches!(self, Self::Call | Self::CallCode)
    }
}

/// What it calls with: some bytes, and then the same 32 up to a length.
#[derive(Clone, Debug)]
pub struct Input {
    pub head: Vec<u8>,
    pub fill: [u8; 32],
    pub length: usize,
}

impl Input {
    /// These bytes, and zeros up to a length.
    pub fn padded(head: impl Into<Vec<u8>>, length: usize) -> Self {
        let head = head.into();
        Self { length: length.max(head.len()), head, fill: [0; 32] }
    }
}

/// A call that is made again and again.
#[derive(Clone, Debug)]
pub struct Looper {
    pub scheme: Scheme,
    pub to: Address,
    pub input: Input,
    pub value: U256,
    /// Gas of each call.
    pub gas: u64,
}

/// Gas with which it stops.
const REST_GAS: u32 = 50_000;

impl Looper {
    /// Init code that gets everything ready and stops.
    pub fn idle(&self) -> Bytes {
        self.with_head(&[0x00])
    }

    /// Init code that calls until the gas is gone.
    pub fn looping(&self) -> Bytes {
        let start = self.ready().len();
        let mut code = vec![0x5b];
        code.extend(self.call());
        // while gas > rest
        code.push(0x62);
        code.extend(&REST_GAS.to_be_bytes()[1..]);
        code.extend([0x5a, 0x11, 0x61]);
        code.extend(u16::try_from(start).unwrap().to_be_bytes());
        code.extend([0x57, 0x00]);
        self.with_head(&code)
    }

    /// Init code that calls once and leaves the gas that this took as the contract's code.
    pub fn once(&self) -> Bytes {
        let mut code = vec![0x5a];
        code.extend(self.call());
        code.extend([0x5a, 0x90, 0x03, 0x5f, 0x52, 0x60, 32, 0x5f, 0xf3]);
        self.with_head(&code)
    }

    /// One call, whose success nobody looks at.
    fn call(&self) -> Vec<u8> {
        let mut code = vec![0x5f, 0x5f];
        push(&mut code, self.input.length);
        code.push(0x5f);
        if self.scheme.has_value() {
            code.push(0x7f);
            code.extend(self.value.to_be_bytes::<32>());
        }
        code.push(0x73);
        code.extend(self.to);
        push(&mut code, usize::try_from(self.gas).unwrap());
        code.extend([self.scheme.opcode(), 0x50]);
        code
    }

    /// Fills the memory: as much as there is doubles, until it is enough. Then the head is copied over it.
    fn ready(&self) -> Vec<u8> {
        let Input { head, fill, length } = &self.input;
        let mut code = vec![0x7f];
        code.extend(fill);
        code.extend([0x5f, 0x52]);
        let mut filled = 32;
        while filled < *length {
            let more = filled.min(length - filled);
            push(&mut code, more);
            code.push(0x5f);
            push(&mut code, filled);
            code.push(0x5e);
            filled += more;
        }
        push(&mut code, head.len());
        // Where the head begins is known when the rest is; two bytes are kept for it.
        code.extend([0x61, 0, 0, 0x5f, 0x39]);
        code
    }

    /// What makes everything ready, `code`, and the head behind it.
    fn with_head(&self, code: &[u8]) -> Bytes {
        let mut out = self.ready();
        let place = out.len() - 4;
        let head_at = u16::try_from(out.len() + code.len()).unwrap();
        out[place..place + 2].copy_from_slice(&head_at.to_be_bytes());
        out.extend(code);
        out.extend(&self.input.head);
        out.into()
    }
}

/// PUSH4.
fn push(code: &mut Vec<u8>, number: usize) {
    code.push(0x63);
    code.extend(u32::try_from(number).unwrap().to_be_bytes());
}
