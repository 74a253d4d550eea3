// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// Errors that every system contract of the chain answers with.
interface IDoor {
    /// delegatecall and callcode would act in the caller's name: use call.
    error DelegateCallRefused();
    /// A system account calls: anybody could have made it do so.
    error CallerIsSystem(address caller);
    /// The method changes state and was called in a static context.
    error StaticCallRefused();
    /// The method takes no value.
    error NotPayable(uint256 value);
    /// No method has this selector.
    error UnknownMethod(bytes4 selector);
    /// The arguments are not the ABI encoding of the method's.
    error MalformedArguments(bytes4 selector);
    /// The ledger account answers no call.
    error LedgerAnswersNoCall();
    /// A fault of the chain's own: the ledger does not have what it owes.
    error LedgerShort(uint256 owed);
    /// One transaction creates more schedules than an id can count.
    error TooManySchedules(uint256 given, uint256 max);
    /// The chain has grown beyond what an id can name.
    error NoScheduleId();
}
