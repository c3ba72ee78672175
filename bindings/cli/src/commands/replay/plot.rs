//! Curves as a drawing. Coordinates are whole numbers; what is drawn decides nothing.

use std::error::Error;

use plotters::prelude::*;

/// What one policy reached: `(percent of demand arrived, hundredths of a percent of all GPUs)`.
pub struct Lines<'a> {
    pub name: &'a str,
    pub allocated: Vec<(usize, u64)>,
    pub fragmented: Vec<(usize, u64)>,
}

const SIZE: (u32, u32) = (960, 640);

/// Draws allocated (thick) and fragmented (thin) GPUs of each policy.
pub fn draw(title: &str, curves: &[Lines<'_>]) -> Result<String, String> {
    let mut text = String::new();
    draw_into(&mut text, title, curves).map_err(|e| e.to_string())?;
    Ok(text)
}

fn draw_into(text: &mut String, title: &str, curves: &[Lines<'_>]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(48)
        .build_cartesian_2d(0..130_i64, 0..10_000_i64)?;
    chart
        .configure_mesh()
        .x_desc("GPU demand arrived, % of all GPUs")
        .y_desc("% of all GPUs: allocated (thick), fragmented (thin)")
        .y_label_formatter(&|hundredths| (hundredths / 100).to_string())
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (i, lines) in curves.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let points = |line: &[(usize, u64)]| line.iter().map(|(x, y)| (*x as i64, *y as i64)).collect::<Vec<_>>();
        let thick = color.stroke_width(3);
        chart
            .draw_series(LineSeries::new(points(&lines.allocated), thick))?
            .label(lines.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], thick));
        chart.draw_series(LineSeries::new(points(&lines.fragmented), color.stroke_width(1)))?;
    }
    chart.configure_series_labels().position(SeriesLabelPosition::UpperLeft).border_style(BLACK).draw()?;
    area.present()?;
    Ok(())
}
