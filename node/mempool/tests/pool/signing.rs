//! Signed transactions for tests.

use alloy_consensus::{SignableTransaction, TxEip1559, TxLegacy, crypto::secp256k1::sign_message};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, uint};
use almanac_mempool::SenderState;
use almanac_primitives::{
    NativeCall, NativeTransaction, RecoveredTransaction, UserTransaction, Wei,
    testing::{Person, native, recovered},
};
use std::sync::LazyLock;

/// What a test wants to have signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Draft {
    pub(crate) nonce: u64,
    pub(crate) fee_cap: u128,
    /// `None` for a legacy transaction, which has one price only.
    pub(crate) priority_fee: Option<u128>,
    pub(crate) gas: u64,
    pub(crate) value: U256,
    pub(crate) input_len: usize,
    /// The second in which an orderless one expires; its number is any nonce.
    pub(crate) orderless: Option<u64>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            nonce: 0,
            fee_cap: 100,
            priority_fee: Some(10),
            gas: 1,
            value: U256::ZERO,
            input_len: 0,
            orderless: None,
        }
    }
}

/// A draft with this number, fee cap and priority fee.
pub(crate) fn draft(nonce: u64, fee_cap: u128, priority_fee: u128) -> Draft {
    Draft { nonce, fee_cap, priority_fee: Some(priority_fee), ..Draft::default() }
}

/// An account that signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signer(pub(crate) u64);

impl Signer {
    pub(crate) fn sign(self, draft: Draft) -> RecoveredTransaction {
        if let Some(expiration) = draft.orderless {
            return self.sign_orderless(draft, expiration);
        }
        draft.signed(|hash| sign_message(self.secret(), hash).unwrap())
    }

    fn sign_orderless(self, draft: Draft, expiration: u64) -> RecoveredTransaction {
        let person = Person { secret: self.secret(), address: self.address() };
        let call = NativeCall {
            to: Some(Address::ZERO),
            value: draft.value,
            input: Bytes::from(vec![1; draft.input_len]),
        };
        let transaction = NativeTransaction {
            gas_limit: draft.gas,
            max_fee_per_gas: draft.fee_cap,
            max_priority_fee_per_gas: draft.priority_fee.unwrap_or(draft.fee_cap),
            ..native::orderless(person.address, draft.nonce, expiration, vec![call])
        };
        recovered(native::sign_native(transaction, &[person.into()]))
    }

    pub(crate) fn address(self) -> Address {
        self.sign(Draft::default()).sender()
    }

    fn secret(self) -> B256 {
        B256::from(U256::from(self.0 + 1))
    }
}

/// An account that signs a hundred thousand times: it uses the same secret number for all its signatures.
/// That gives the key away, and saves all arithmetic on the curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusySigner {
    r: U256,
    y_is_odd: bool,
    number_inverse: U256,
    r_times_secret: U256,
}

impl BusySigner {
    /// Signs once with care, to have a point of the curve, and computes which number was behind that.
    pub(crate) fn new(signer: Signer) -> Self {
        let message = B256::repeat_byte(3);
        let first = sign_message(signer.secret(), message).unwrap();
        let r_times_secret = first.r().mul_mod(signer.secret().into(), ORDER);
        let number = sum(message, r_times_secret).mul_mod(first.s().inv_mod(ORDER).unwrap(), ORDER);
        let number_inverse = number.inv_mod(ORDER).unwrap();
        Self { r: first.r(), y_is_odd: first.v(), number_inverse, r_times_secret }
    }

    pub(crate) fn sign(&self, draft: Draft) -> RecoveredTransaction {
        draft.signed(|hash| {
            let s = sum(hash, self.r_times_secret).mul_mod(self.number_inverse, ORDER);
            Signature::new(self.r, s, self.y_is_odd).normalized_s()
        })
    }
}

/// Order of the curve's group.
const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

fn sum(message: B256, other: U256) -> U256 {
    U256::from_be_bytes(message.0).add_mod(other, ORDER)
}

/// Signs as somebody whom nobody has met: any signature belongs to someone, and for another transaction to
/// someone else. Saves making a key.
pub(crate) fn sign_as_stranger(draft: Draft) -> RecoveredTransaction {
    static ANY: LazyLock<Signature> =
        LazyLock::new(|| sign_message(B256::repeat_byte(1), B256::repeat_byte(2)).unwrap());
    draft.signed(|_| *ANY)
}

impl Draft {
    fn signed(self, sign: impl FnOnce(B256) -> Signature) -> RecoveredTransaction {
        let mut encoded = Vec::new();
        let input = Bytes::from(vec![1; self.input_len]);
        let to = TxKind::Call(Address::ZERO);
        if let Some(max_priority_fee_per_gas) = self.priority_fee {
            let tx = TxEip1559 {
                chain_id: 1,
                nonce: self.nonce,
                gas_limit: self.gas,
                max_fee_per_gas: self.fee_cap,
                max_priority_fee_per_gas,
                to,
                value: self.value,
                access_list: Default::default(),
                input,
            };
            let signature = sign(tx.signature_hash());
            tx.into_signed(signature).eip2718_encode(&mut encoded);
        } else {
            let tx = TxLegacy {
                chain_id: Some(1),
                nonce: self.nonce,
                gas_price: self.fee_cap,
                gas_limit: self.gas,
                to,
                value: self.value,
                input,
            };
            let signature = sign(tx.signature_hash());
            tx.into_signed(signature).eip2718_encode(&mut encoded);
        }
        RecoveredTransaction::recover(
            UserTransaction::decode(&encoded).unwrap(),
            &almanac_primitives::Chain::default(),
        )
        .unwrap()
    }
}

/// An account at this number with more money than a test can spend.
pub(crate) fn rich(nonce: u64) -> SenderState {
    SenderState { nonce, balance: Wei(U256::MAX), is_delegated: false }
}

/// An account at this number with this much money.
pub(crate) fn account(nonce: u64, balance: u64) -> SenderState {
    SenderState { nonce, balance: Wei(U256::from(balance)), is_delegated: false }
}
