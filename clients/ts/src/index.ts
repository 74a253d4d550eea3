// viem for Almanac: native transactions (type 0x72) and the chain's own contracts.

export * from "./abis.js";
export * from "./actions.js";
export * from "./calendar.js";
export * from "./keys.js";
export { almanacChain, almanacDev, doors, genesisHash } from "./chain.js";
export { type NativeRequest, type Sending, prepareNative, sendNative, signNativeRequest } from "./native.js";
export * from "./signed.js";
export {
    type NativeRole,
    nativeDigest,
    nativeSignature,
    nativeTypedData,
    nativeTypes,
    orderSignatures,
    payFeeTypes,
    signNative,
    signTyped,
} from "./sign.js";
export * from "./transaction.js";
