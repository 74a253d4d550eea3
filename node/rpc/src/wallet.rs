//! The accounts that the node signs for: those of a developer chain, whose keys are public.

use alloy_consensus::{SignableTransaction as _, TypedTransaction, transaction::EthereumTypedTransaction};
use alloy_dyn_abi::TypedData;
use alloy_primitives::{Address, B256, Bytes, Signature};
use alloy_signer::SignerSync as _;
use alloy_signer_local::PrivateKeySigner;
use std::collections::BTreeMap;

/// Keys by address. Empty on a network node.
#[derive(Debug, Default)]
pub struct Wallet {
    order: Vec<Address>,
    signers: BTreeMap<Address, PrivateKeySigner>,
}

/// Why nothing was signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    /// The key is not here.
    #[error("unknown account {0}: this node has no key for it; sign it yourself, or impersonate it")]
    UnknownAccount(Address),
    /// The typed data makes no sense.
    #[error("typed data cannot be hashed: {0}")]
    TypedData(String),
    /// The key would not sign.
    #[error("cannot sign: {0}")]
    Signer(String),
}

impl Wallet {
    /// A wallet with these keys, in this order. A key that is no key of secp256k1 is left out.
    pub fn new(secrets: impl IntoIterator<Item = B256>) -> Self {
        let mut wallet = Self::default();
        for signer in secrets.into_iter().filter_map(|secret| PrivateKeySigner::from_bytes(&secret).ok()) {
            wallet.order.push(signer.address());
            wallet.signers.insert(signer.address(), signer);
        }
        wallet
    }

    /// The accounts, in the order in which they were given.
    pub fn addresses(&self) -> &[Address] {
        &self.order
    }

    /// An error where it cannot sign for this account.
    pub fn check(&self, address: Address) -> Result<(), WalletError> {
        self.signer(address).map(drop)
    }

    /// Whether it can sign for this account.
    pub fn has(&self, address: Address) -> bool {
        self.signers.contains_key(&address)
    }

    /// Signs a message as EIP-191 says.
    pub fn sign_message(&self, address: Address, message: &[u8]) -> Result<Bytes, WalletError> {
        let signature = self.signer(address)?.sign_message_sync(message).map_err(refused)?;
        Ok(signature.as_bytes().into())
    }

    /// Signs typed data as EIP-712 says. The data must be within bounds: hashing walks it recursively.
    pub fn sign_typed_data(&self, address: Address, data: &TypedData) -> Result<Bytes, WalletError> {
        self.check(address)?;
        let hash = data.eip712_signing_hash().map_err(|error| WalletError::TypedData(error.to_string()))?;
        Ok(self.sign_hash(address, hash)?.as_bytes().into())
    }

    /// Signs a transaction.
    pub fn sign_transaction(
        &self,
        address: Address,
        transaction: &TypedTransaction,
    ) -> Result<Signature, WalletError> {
        self.sign_hash(address, signature_hash(transaction))
    }

    fn sign_hash(&self, address: Address, hash: B256) -> Result<Signature, WalletError> {
        self.signer(address)?.sign_hash_sync(&hash).map_err(refused)
    }

    fn signer(&self, address: Address) -> Result<&PrivateKeySigner, WalletError> {
        self.signers.get(&address).ok_or(WalletError::UnknownAccount(address))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn refused(error: alloy_signer::Error) -> WalletError {
    WalletError::Signer(error.to_string())
}

fn signature_hash(transaction: &TypedTransaction) -> B256 {
    match transaction {
        EthereumTypedTransaction::Legacy(tx) => tx.signature_hash(),
        EthereumTypedTransaction::Eip2930(tx) => tx.signature_hash(),
        EthereumTypedTransaction::Eip1559(tx) => tx.signature_hash(),
        EthereumTypedTransaction::Eip4844(tx) => tx.signature_hash(),
        EthereumTypedTransaction::Eip7702(tx) => tx.signature_hash(),
    }
}

/// A transaction with its signature, encoded.
pub(crate) fn encode_signed(transaction: TypedTransaction, signature: Signature) -> Bytes {
    use alloy_eips::eip2718::Encodable2718 as _;
    transaction.into_envelope(signature).encoded_2718().into()
}
