//! The schedule service's interface.

alloy_sol_types::sol!("../../contracts/IScheduleService.sol");
