//! The colours, light and dark. Hues are told apart by people with any of the common colour
//! deficiencies (after Okabe and Ito 2008, darkened or lightened until each has a contrast of at
//! least 3 to the ground); every series has a dash or a name beside its colour as well.

/// Custom properties on light ground.
pub const LIGHT: &str = "--bg: #ffffff; --fg: #1b1f24; --dim: #56606b; --hair: #d7dce2; --panel: #f6f7f9; \
    --c0: #0067a8; --c1: #b84a00; --c2: #00794f; --c3: #9c3d7d; --c4: #8a6100; --c5: #008a9e; --c6: #7a4fbf; \
    --p0: #0067a8; --p1: #d98200; --p2: #9c3d7d; \
    --h0: #0b4f8a; --h1: #2f7fc1; --h2: #7fb2dc; --h3: #c9dff0; --h4: #f1f1f1; --h5: #f6dcc0; --h6: #eeb06f; --h7: #cf6f1a; --h8: #8f3f00;";

/// Custom properties on dark ground.
pub const DARK: &str = "--bg: #14171b; --fg: #e8ebef; --dim: #a5afba; --hair: #343b44; --panel: #1c2026; \
    --c0: #58b4f0; --c1: #ff8f4a; --c2: #3ecf98; --c3: #ea8fcb; --c4: #e3b341; --c5: #6fe3ee; --c6: #b99cff; \
    --p0: #58b4f0; --p1: #e3a23b; --p2: #ea8fcb; \
    --h0: #9fd0ff; --h1: #5ba3e0; --h2: #376f9f; --h3: #2b4257; --h4: #2c3036; --h5: #4f3d2a; --h6: #8a5a24; --h7: #d0812f; --h8: #ffbd7a;";

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, WCAG 2.2.
    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn colour<'c>(palette: &'c str, name: &str) -> &'c str {
        let start = palette.find(&format!("--{name}: ")).expect(name) + name.len() + 4;
        &palette[start..start + 7]
    }

    #[test]
    fn text_and_marks_stand_out_from_the_ground() {
        for palette in [LIGHT, DARK] {
            for ground in ["bg", "panel"] {
                let ground = colour(palette, ground);
                for (name, least) in [("fg", 7.0), ("dim", 4.5)] {
                    assert!(contrast(colour(palette, name), ground) >= least, "{name} on {ground}");
                }
                for name in ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "p0", "p2"] {
                    let found = contrast(colour(palette, name), ground);
                    assert!(found >= 3.0, "{name} on {ground}: {found:.2}");
                }
            }
            let with_ground = ["h0", "h1", "h7", "h8"].map(|shade| (shade, "bg"));
            let with_text = ["h2", "h3", "h4", "h5", "h6"].map(|shade| (shade, "fg"));
            for (shade, text) in with_ground.into_iter().chain(with_text) {
                let found = contrast(colour(palette, shade), colour(palette, text));
                assert!(found >= 3.0, "{text} on {shade}: {found:.2}");
            }
        }
    }
}
