//! A picture of the chain as lines of text.

use super::picture::{Lane, Picture};
use crate::{
    client::{
        output::Colour,
        words::{date, distance},
    },
    span::gwei,
};

/// Heights of a column.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Runs that have happened, in a frame.
const PAST: usize = 10;

/// A line, in one colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) colour: Option<Colour>,
}

/// The whole frame.
pub(super) fn lines(picture: &Picture, width: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |text: String, colour: Option<Colour>| lines.push(Line { text: cut(&text, width), colour });
    add(
        format!("Almanac {}  {}  chain {}  q quits", picture.version, picture.host, picture.chain_id),
        Some(Colour::Bold),
    );
    add(head(picture), None);
    add(pool(picture), None);
    add(String::new(), None);
    add(
        format!("{:<9}{:>8} {:>8} {:7}runs in the next hour", "LANES", "pending", "overdue", ""),
        Some(Colour::Cyan),
    );
    for lane in &picture.lanes {
        add(lane_line(lane), lane.is_held.then_some(Colour::Yellow));
    }
    add(String::new(), None);
    add("DUE NEXT".to_owned(), Some(Colour::Cyan));
    for due in &picture.next {
        let (at, distance) = (date(due.at), distance(due.at, picture.now));
        add(
            format!(
                "{distance:>10}  {at:<23}  {:<14} {:<9} {} gas {}",
                due.id,
                due.lane,
                short(&due.target),
                due.gas
            ),
            None,
        );
    }
    if picture.next.is_empty() {
        add("nothing is due".to_owned(), Some(Colour::Dim));
    }
    add(String::new(), None);
    add("JUST RAN".to_owned(), Some(Colour::Cyan));
    for ran in picture.past.iter().take(PAST) {
        let result = if ran.is_success { "succeeded" } else { "failed" };
        let when = distance(ran.at, picture.now);
        let line = format!(
            "{when:>10}  block {:<8} {:<14} run {:<5} {result:<9}  {} gas {}",
            ran.block,
            ran.id,
            // People count from 1.
            ran.run.saturating_add(1),
            short(&ran.target),
            ran.gas
        );
        add(line, (!ran.is_success).then_some(Colour::Red));
    }
    if picture.past.is_empty() {
        add("no run in the last blocks".to_owned(), Some(Colour::Dim));
    }
    lines
}

/// A line that stands out.
pub(super) fn warning(text: &str, width: usize) -> Line {
    Line { text: cut(text, width), colour: Some(Colour::Red) }
}

/// The lines as text, in colour on a terminal.
pub(super) fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| painted(line) + "\n").collect()
}

pub(super) fn painted(line: &Line) -> String {
    line.colour.map_or_else(|| line.text.clone(), |colour| colour.paint(&line.text))
}

fn head(picture: &Picture) -> String {
    let full = (picture.gas_used * 100).checked_div(picture.gas_limit).unwrap_or_default();
    format!(
        "block {}  {} ({})  base fee {}  gas {full} %",
        picture.block,
        date(picture.block_time),
        distance(picture.block_time, picture.now),
        gwei(picture.base_fee),
    )
}

fn pool(picture: &Picture) -> String {
    let (ready, parked) = picture.pool;
    let network = match &picture.network {
        None => "developer chain".to_owned(),
        Some(network) => format!(
            "{}  {} peers  last block {}{}",
            network.role.as_deref().unwrap_or("node of a network"),
            network.peers.map_or_else(|| "?".to_owned(), |peers| peers.to_string()),
            if network.is_final { "final" } else { "not final yet" },
            if network.is_syncing { "  catching up" } else { "" },
        ),
    };
    format!("pool {ready} ready, {parked} parked  {network}")
}

fn lane_line(lane: &Lane) -> String {
    let state = if lane.is_held { "paused" } else { "" };
    format!("{:<9}{:>8} {:>8} {state:<7}{}", lane.name, lane.pending, lane.overdue, chart(&lane.parts))
}

/// A column for each number; nothing is a dot.
fn chart(numbers: &[u64]) -> String {
    let most = numbers.iter().copied().max().unwrap_or_default();
    let column = |number: &u64| match number {
        0 => '·',
        number => BARS[usize::try_from((number * 8).div_ceil(most) - 1).unwrap_or(7).min(7)],
    };
    numbers.iter().map(column).collect()
}

/// The ends of an address, which people compare.
fn short(address: &str) -> String {
    match (address.get(..6), address.get(address.len().saturating_sub(4)..)) {
        (Some(start), Some(end)) if address.len() > 12 => format!("{start}…{end}"),
        _ => address.to_owned(),
    }
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::picture::{Due, Network, Ran};
    use alloy_primitives::U256;
    use almanac_primitives::TimestampMs;

    fn picture() -> Picture {
        let at = |seconds: u64| TimestampMs(1_796_115_600_000 + seconds * 1_000);
        let target = "0x00000000000000000000000000000000000c0de1".to_owned();
        let mut parts = vec![0; 8];
        (parts[0], parts[5]) = (8, 1);
        Picture {
            host: "127.0.0.1:8545".to_owned(),
            version: "almanac/0.1".to_owned(),
            chain_id: 31_337,
            block: 7,
            block_time: at(0),
            now: at(2),
            base_fee: U256::from(1_500_000_000),
            gas_used: 30,
            gas_limit: 60,
            pool: (3, 1),
            network: Some(Network {
                role: Some("validator".to_owned()),
                peers: Some(3),
                is_final: true,
                is_syncing: false,
            }),
            lanes: vec![Lane { name: "cron".to_owned(), pending: 2, overdue: 0, is_held: false, parts }],
            next: vec![Due {
                at: at(62),
                id: "2-1-0".to_owned(),
                lane: "cron".to_owned(),
                target: target.clone(),
                gas: 100_000,
            }],
            past: [Ran {
                block: 6,
                at: at(0),
                id: "2-1-0".to_owned(),
                run: 0,
                is_success: false,
                gas: 43_000,
                target,
            }]
            .into(),
        }
    }

    #[test]
    fn top_01_a_frame_as_people_read_it() {
        let expected = "\
Almanac almanac/0.1  127.0.0.1:8545  chain 31337  q quits
block 7  2026-12-01 09:00 UTC (2 s ago)  base fee 1.5 gwei  gas 50 %
pool 3 ready, 1 parked  validator  3 peers  last block final

LANES     pending  overdue        runs in the next hour
cron            2        0        █····▁··

DUE NEXT
   in 60 s  2026-12-01 09:01:02 UTC  2-1-0          cron      0x0000…0de1 gas 100000

JUST RAN
   2 s ago  block 6        2-1-0          run 1     failed     0x0000…0de1 gas 43000
";
        assert_eq!(text(&lines(&picture(), 120)), expected);
        let narrow = lines(&picture(), 20);
        assert!(narrow.iter().all(|line| line.text.chars().count() <= 20));
        assert_eq!(lines(&Picture::default(), 80).last().unwrap().text, "no run in the last blocks");
    }
}
