//! Four f32 lanes: a machine vector in wasm, an array elsewhere.

#[cfg(target_arch = "wasm32")]
mod machine {
    use core::arch::wasm32::*;

    #[derive(Clone, Copy)]
    pub(crate) struct Lanes(v128);

    impl Lanes {
        #[inline(always)]
        pub(crate) fn splat(value: f32) -> Lanes {
            Lanes(f32x4_splat(value))
        }

        /// # Safety
        ///
        /// Four floats can be read at `from`.
        #[inline(always)]
        pub(crate) unsafe fn load(from: *const f32) -> Lanes {
            // SAFETY: the caller's promise; wasm loads need no alignment.
            Lanes(unsafe { v128_load(from.cast()) })
        }

        /// # Safety
        ///
        /// Four floats can be written at `to`.
        #[inline(always)]
        pub(crate) unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller's promise; wasm stores need no alignment.
            unsafe { v128_store(to.cast(), self.0) }
        }

        /// Returns `self + a * b`, with one rounding or two, depending on the target.
        #[inline(always)]
        pub(crate) fn add_product(self, a: Lanes, b: Lanes) -> Lanes {
            #[cfg(target_feature = "relaxed-simd")]
            return Lanes(f32x4_relaxed_madd(a.0, b.0, self.0));
            #[cfg(not(target_feature = "relaxed-simd"))]
            return Lanes(f32x4_add(self.0, f32x4_mul(a.0, b.0)));
        }

        /// Returns the even lanes of both vectors.
        #[inline(always)]
        pub(crate) fn every_other(self, next: Lanes) -> Lanes {
            Lanes(i32x4_shuffle::<0, 2, 4, 6>(self.0, next.0))
        }

        /// Clamps to `low` and `high`. NaN stays NaN.
        #[inline(always)]
        pub(crate) fn clamp(self, low: Lanes, high: Lanes) -> Lanes {
            Lanes(f32x4_pmin(f32x4_pmax(self.0, low.0), high.0))
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod machine {
    #[derive(Clone, Copy)]
    pub(crate) struct Lanes([f32; 4]);

    impl Lanes {
        #[inline(always)]
        pub(crate) fn splat(value: f32) -> Lanes {
            Lanes([value; 4])
        }

        /// # Safety
        ///
        /// Four floats can be read at `from`.
        #[inline(always)]
        pub(crate) unsafe fn load(from: *const f32) -> Lanes {
            // SAFETY: the caller's promise; the read asks for no alignment.
            Lanes(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
        }

        /// # Safety
        ///
        /// Four floats can be written at `to`.
        #[inline(always)]
        pub(crate) unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller's promise; the write asks for no alignment.
            unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
        }

        /// Returns `self + a * b`, with one rounding or two, depending on the target.
        #[inline(always)]
        pub(crate) fn add_product(self, a: Lanes, b: Lanes) -> Lanes {
            Lanes(std::array::from_fn(|lane| {
                self.0[lane] + a.0[lane] * b.0[lane]
            }))
        }

        /// Returns the even lanes of both vectors.
        #[inline(always)]
        pub(crate) fn every_other(self, next: Lanes) -> Lanes {
            let ([a, _, c, _], [e, _, g, _]) = (self.0, next.0);
            Lanes([a, c, e, g])
        }

        /// Clamps to `low` and `high`. NaN stays NaN.
        #[inline(always)]
        pub(crate) fn clamp(self, low: Lanes, high: Lanes) -> Lanes {
            Lanes(std::array::from_fn(|lane| {
                let raised = match self.0[lane] < low.0[lane] {
                    true => low.0[lane],
                    false => self.0[lane],
                };
                match high.0[lane] < raised {
                    true => high.0[lane],
                    false => raised,
                }
            }))
        }
    }
}

pub(crate) use machine::Lanes;
