/** A bar of a chart: its parts one after the other, such as the server's share and the database's. */
export type Bar = { group: string; label: string; parts: readonly number[] }

const [width, left, barHeight, groupGap] = [760, 240, 16, 14]
const colors = ['#2f6f9f', '#9fc3dd']

/** Horizontal stacked bars as SVG, on a logarithmic scale from 1, for what spans several orders of magnitude. */
export function barChart(title: string, legend: readonly string[], bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ parts }) => sum(parts)))
  const x = (value: number) =>
    left + ((width - left - 70) * Math.log10(Math.max(1, value))) / Math.log10(most)
  const lines: string[] = []
  let y = 52
  let group = ''
  for (const bar of bars) {
    if (bar.group !== group) {
      y += groupGap
      group = bar.group
    }
    lines.push(text(left - 8, y + 12, `${bar.group} · ${bar.label}`, 'end'))
    let from = 0
    bar.parts.forEach((part, at) => {
      const [begin, end] = [x(from), x(from + part)]
      from += part
      lines.push(
        `<rect x="${begin.toFixed(1)}" y="${y}" width="${Math.max(1, end - begin).toFixed(1)}" height="${barHeight - 3}" fill="${colors[at]}"/>`,
      )
    })
    lines.push(text(x(from) + 6, y + 12, String(Math.round(from)), 'start'))
    y += barHeight
  }
  const keys = legend.map(
    (name, at) =>
      `<rect x="${left + at * 150}" y="30" width="12" height="12" fill="${colors[at]}"/>${text(left + at * 150 + 18, 40, name, 'start')}`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y + 16}" font-family="sans-serif" font-size="12">
<title>Processor time per request</title>
<rect width="100%" height="100%" fill="#ffffff"/>
${text(16, 20, title, 'start')}
${[...keys, ...lines].join('\n')}
</svg>
`
}

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0)

const text = (x: number, y: number, words: string, anchor: 'start' | 'end'): string =>
  `<text x="${x.toFixed(0)}" y="${y}" text-anchor="${anchor}" fill="#222222">${words.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</text>`
