// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.24;

/// What the ledger at 0x000000000000000000000000000000000000a1ff says when the chain finds a fault of its own.
/// It answers no call.
interface ILedger {
    /// A schedule was put aside. Nothing runs it any more; its owner may cancel it and gets the escrow.
    event ScheduleQuarantined(uint256 indexed id, string reason);
    /// A lane cannot be read and is paused, until governance lets it go on.
    event LanePaused(uint8 indexed lane, string reason);
    /// What became of schedules in this block contradicted the calendar, which follows them as far as it can.
    event CalendarContradicted(string reason);
}
