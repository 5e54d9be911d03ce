//! Measurements of a search: noises of single tensors, and errors of quantized models by sample.
//!
//! Shards of a search write them to files; the union of all files is what one run measures.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Bits;
use super::judge::SampleSums;
use crate::stats::DamagedStatistics;

/// A half of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Half {
    /// The samples that calibrated and choose.
    Choosing,
    /// The samples that verify.
    Held,
}

/// A quantized model whose outputs are compared with the float model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JudgedModel {
    /// The model of a point of the curve.
    Point(u32),
    /// The model of the choice.
    Chosen,
    /// The model by the settings without a search.
    Plain,
}

/// A pass over tensors, each rounded by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoisePass {
    /// All tensors with 8 bits, on the first sample.
    First,
    /// The worst tensors with 8 bits, on the other samples.
    Others,
    /// The worst weights with 4 bits, on the first sample.
    Four,
}

impl NoisePass {
    const ALL: [NoisePass; 3] = [NoisePass::First, NoisePass::Others, NoisePass::Four];

    /// The bits of the rounded tensor.
    pub fn bits(self) -> Bits {
        match self {
            NoisePass::First | NoisePass::Others => Bits::Eight,
            NoisePass::Four => Bits::Four,
        }
    }

    /// The samples of the pass, of `count` measured ones.
    pub fn samples(self, count: usize) -> Range<usize> {
        match self {
            NoisePass::First | NoisePass::Four => 0..count.min(1),
            NoisePass::Others => count.min(1)..count,
        }
    }
}

/// Measured noises and errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    noises: BTreeMap<(NoisePass, u32), f64>,
    errors: BTreeMap<(Half, JudgedModel), BTreeMap<u32, SampleSums>>,
}

const NOISE: u8 = 0;
const ERROR: u8 = 1;

impl Measurements {
    /// The noise of the tensor at this place in a pass.
    pub fn noise(&self, pass: NoisePass, place: usize) -> Option<f64> {
        self.noises
            .get(&(pass, u32::try_from(place).ok()?))
            .copied()
    }

    /// The errors of a model on a half of the samples, in the order of the samples.
    pub fn errors(&self, half: Half, model: JudgedModel) -> Option<Vec<SampleSums>> {
        let errors = self.errors.get(&(half, model))?;
        Some(errors.values().copied().collect())
    }

    /// Adds a noise.
    pub fn add_noise(&mut self, pass: NoisePass, place: usize, noise: f64) {
        self.noises.insert((pass, place as u32), noise);
    }

    /// Adds the errors of a model on a sample.
    pub fn add_error(&mut self, half: Half, model: JudgedModel, sample: usize, sums: SampleSums) {
        let errors = self.errors.entry((half, model)).or_default();
        errors.insert(sample as u32, sums);
    }

    /// Adds what other shards measured. Fails if both measured the same.
    pub fn merge(&mut self, other: &Measurements) -> Result<(), DamagedStatistics> {
        const TWICE: DamagedStatistics = DamagedStatistics("two shards measured the same");
        for (key, noise) in &other.noises {
            if self.noises.insert(*key, *noise).is_some() {
                return Err(TWICE);
            }
        }
        for (key, errors) in &other.errors {
            let own = self.errors.entry(*key).or_default();
            for (sample, sums) in errors {
                if own.insert(*sample, *sums).is_some() {
                    return Err(TWICE);
                }
            }
        }
        Ok(())
    }

    /// The binary form: a record for each number that was measured.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for ((pass, place), noise) in &self.noises {
            out.extend([NOISE, *pass as u8]);
            out.extend(place.to_le_bytes());
            out.extend(noise.to_le_bytes());
        }
        for ((half, model), errors) in &self.errors {
            for (sample, sums) in errors {
                let (kind, point) = match model {
                    JudgedModel::Point(point) => (0, *point),
                    JudgedModel::Chosen => (1, 0),
                    JudgedModel::Plain => (2, 0),
                };
                out.extend([ERROR, u8::from(*half == Half::Held), kind]);
                out.extend(point.to_le_bytes());
                out.extend(sample.to_le_bytes());
                sums.numbers()
                    .iter()
                    .for_each(|number| out.extend(number.to_le_bytes()));
            }
        }
        out
    }

    /// Reads the binary form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Measurements, DamagedStatistics> {
        let mut from = Records(bytes);
        let mut all = Measurements::default();
        while let Some(kind) = from.next_kind() {
            let unknown = match kind {
                NOISE => {
                    let pass = NoisePass::ALL.get(usize::from(from.byte()?)).copied();
                    let pass = pass.ok_or(DamagedStatistics("a pass over tensors is unknown"))?;
                    let place = from.whole()?;
                    all.noises.insert((pass, place), from.number()?).is_some()
                }
                ERROR => {
                    let half = match from.byte()? {
                        0 => Half::Choosing,
                        1 => Half::Held,
                        _ => return Err(DamagedStatistics("a half of the samples is unknown")),
                    };
                    let (kind, point) = (from.byte()?, from.whole()?);
                    let model = match (kind, point) {
                        (0, point) => JudgedModel::Point(point),
                        (1, 0) => JudgedModel::Chosen,
                        (2, 0) => JudgedModel::Plain,
                        _ => return Err(DamagedStatistics("a judged model is unknown")),
                    };
                    let sample = from.whole()?;
                    let mut numbers = [0.0; SampleSums::COUNT];
                    for number in &mut numbers {
                        *number = from.number()?;
                    }
                    let errors = all.errors.entry((half, model)).or_default();
                    errors.insert(sample, SampleSums::of(numbers)).is_some()
                }
                _ => return Err(DamagedStatistics("the kind of a record is unknown")),
            };
            if unknown {
                return Err(DamagedStatistics("a number is there twice"));
            }
        }
        Ok(all)
    }
}

/// The rest of the records.
struct Records<'a>(&'a [u8]);

impl Records<'_> {
    fn next_kind(&mut self) -> Option<u8> {
        let (&kind, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(kind)
    }

    fn take<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], DamagedStatistics> {
        let (taken, rest) = self
            .0
            .split_first_chunk::<COUNT>()
            .ok_or(DamagedStatistics("the bytes end early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, DamagedStatistics> {
        Ok(self.take::<1>()?[0])
    }

    fn whole(&mut self) -> Result<u32, DamagedStatistics> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    /// A number that is finite and not negative, as all measured ones are.
    fn number(&mut self) -> Result<f64, DamagedStatistics> {
        let number = f64::from_le_bytes(self.take()?);
        match number.is_finite() && number >= 0.0 {
            true => Ok(number),
            false => Err(DamagedStatistics("a measured number is not one")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(from: usize) -> Measurements {
        let mut all = Measurements::default();
        for place in from..from + 3 {
            all.add_noise(NoisePass::First, place, 1.0 / (place + 3) as f64);
            all.add_noise(NoisePass::Four, place, 0.1);
            for model in [
                JudgedModel::Point(7),
                JudgedModel::Chosen,
                JudgedModel::Plain,
            ] {
                for half in [Half::Choosing, Half::Held] {
                    let numbers = std::array::from_fn(|at| (at + place) as f64 / 3.0);
                    all.add_error(half, model, place, SampleSums::of(numbers));
                }
            }
        }
        all
    }

    #[test]
    fn the_binary_form_reads_back_and_a_union_does_not_depend_on_the_order() {
        let (a, b) = (some(0), some(3));
        assert_eq!(Measurements::from_bytes(&a.bytes()).unwrap(), a);
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b).unwrap();
        ba.merge(&a).unwrap();
        assert_eq!(ab.bytes(), ba.bytes());
        assert_eq!(ab.noise(NoisePass::First, 5), Some(1.0 / 8.0));
        assert_eq!(ab.errors(Half::Held, JudgedModel::Chosen).unwrap().len(), 6);
        assert!(ab.merge(&a).is_err());
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = some(0).bytes();
        let twice = [bytes.as_slice(), bytes.as_slice()].concat();
        let mut infinite = bytes.clone();
        infinite[6..14].copy_from_slice(&f64::INFINITY.to_le_bytes());
        let mut kind = bytes.clone();
        kind[0] = 9;
        for damaged in [&bytes[..bytes.len() - 1], &twice, &infinite, &kind] {
            assert!(Measurements::from_bytes(damaged).is_err());
        }
    }
}
