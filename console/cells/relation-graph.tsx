import { CellName } from '../api/cell-name.tsx'
import { cells } from '../copy/cells.ts'
import { go, to } from '../lib/router.ts'
import { Text } from '../ui/text.tsx'

/** A relation as it is drawn: the cell at its other end, and what it is called. */
export type End = { id: string; name: string }
const shownMax = 12
const [row, box, width, side] = [44, 32, 900, 230]

/**
 * The cells that lead here, the cell, and those it leads to, in three columns. Only to look at and to click: the lists
 * below offer the same to everybody.
 */
export function RelationGraph({
  label,
  here,
  away,
  isMore,
}: {
  label: string
  here: readonly End[]
  away: readonly End[]
  isMore: { here: boolean; away: boolean }
}) {
  const linesOf = (ends: readonly End[]): number => Math.min(ends.length, shownMax + 1)
  const height = Math.max(1, linesOf(here), linesOf(away)) * row
  const middle = height / 2
  const column = (ends: readonly End[], from: 'here' | 'away') => {
    const top = (height - linesOf(ends) * row) / 2
    return (
      <>
        {ends.slice(0, shownMax).map((end, index) => (
          <Node
            key={`${end.id} ${end.name}`}
            end={end}
            from={from}
            y={top + index * row + row / 2}
            middle={middle}
          />
        ))}
        {ends.length > shownMax && (
          <text
            class="soft-fill"
            x={from === 'here' ? side / 2 : width - side / 2}
            y={top + shownMax * row + row / 2}
          >
            {cells.more_nodes(ends.length - shownMax, isMore[from])}
          </text>
        )}
      </>
    )
  }
  return (
    <svg
      class="graph"
      role="img"
      aria-label={cells.graph(here.length, away.length)}
      viewBox={`-1 0 ${width + 2} ${height}`}
    >
      <defs>
        <marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0 8 4 0 8z" />
        </marker>
      </defs>
      {column(here, 'here')}
      {column(away, 'away')}
      <rect class="is-centre" x={340} y={middle - 20} width={220} height={40} rx={8} />
      <foreignObject x={340} y={middle - 20} width={220} height={40}>
        <div class="graph-name is-centre">
          <Text>{label}</Text>
        </div>
      </foreignObject>
    </svg>
  )
}

function Node({ end, from, y, middle }: { end: End; from: 'here' | 'away'; y: number; middle: number }) {
  const isHere = from === 'here'
  const x = isHere ? 0 : width - side
  const [begin, until] = isHere ? [side, 340] : [560, width - side]
  const [beginY, untilY] = isHere ? [y, middle] : [middle, y]
  const bend = (begin + until) / 2
  return (
    <g>
      <path
        d={`M${begin} ${beginY}C${bend} ${beginY} ${bend} ${untilY} ${until} ${untilY}`}
        marker-end="url(#tip)"
      />
      <foreignObject x={isHere ? side + 4 : width - side - 108} y={y - 22} width={100} height={18}>
        <div class={isHere ? 'graph-edge' : 'graph-edge is-end'}>
          <Text>{end.name}</Text>
        </div>
      </foreignObject>
      <rect x={x} y={y - box / 2} width={side} height={box} rx={6} />
      <foreignObject x={x} y={y - box / 2} width={side} height={box}>
        <div class="graph-name" onPointerUp={() => go(to(`/cells/${end.id}`))}>
          <CellName id={end.id} />
        </div>
      </foreignObject>
    </g>
  )
}
