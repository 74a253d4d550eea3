//! What people give to be signed, and the signatures that they bring back.

use super::{
    file::SigningFile,
    line::{self, Answer, PREFIX},
    request::Request,
};
use alloy_primitives::Bytes;
use almanac_primitives::ScheduleId;
use anyhow::{Context as _, ensure};
use std::path::{Path, PathBuf};

/// What is to be signed.
pub(super) enum Given {
    /// It is on a chain.
    Id(ScheduleId),
    /// Somebody sent a line.
    Line(Request),
    /// It is in a file.
    File(PathBuf, SigningFile),
}

impl Given {
    pub(super) fn read(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        if text.starts_with(PREFIX) {
            return Ok(Self::Line(line::read_request(text)?));
        }
        let path = PathBuf::from(text);
        ensure!(
            path.exists(),
            "NothingToSign: {text:?} is neither an id such as 2-1-0, nor a line that begins with \"{PREFIX}sign:\", \
             nor a file"
        );
        let file = SigningFile::read(&path)?;
        Ok(Self::File(path, file))
    }
}

/// Reads signatures over a request: lines, files, or what a wallet answered. Each is checked.
pub(super) fn read_answers(request: &Request, given: &[String]) -> anyhow::Result<Vec<Answer>> {
    let mut all: Vec<Answer> = Vec::new();
    for text in given {
        for answer in read_some(request, text.trim())? {
            request.check(&answer)?;
            if !all.iter().any(|known| known.key == answer.key) {
                all.push(answer);
            }
        }
    }
    Ok(all)
}

fn read_some(request: &Request, text: &str) -> anyhow::Result<Vec<Answer>> {
    if text.starts_with(PREFIX) {
        return Ok(vec![line::read_answer(text)?]);
    }
    if text.starts_with("0x") {
        let signature: Bytes = text.parse().with_context(|| format!("{text:?} is not hexadecimal"))?;
        let answer = request.answer_of(&signature).context("WrongSignature: it is none of a known curve")?;
        return Ok(vec![answer]);
    }
    let file = SigningFile::read(Path::new(text))?;
    ensure!(
        !file.answers.is_empty(),
        "NotSigned: {text} has no signature yet: sign it with `almanac schedule sign {text}`"
    );
    Ok(file.answers)
}
