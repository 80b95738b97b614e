import { useRef } from 'preact/hooks'
import { useCall } from '../api/query.ts'
import { cellLabel } from '../copy/cells.ts'
import { to } from '../lib/router.ts'
import { shortId } from '../ui/id.tsx'
import { Text } from '../ui/text.tsx'

const askedAtOnce = 100

/** The label of a cell, asked for with those of its neighbours in a list. */
export function CellName({ id, all }: { id: string; all: readonly string[] }) {
  // Sorted: another order of the same cells asks for nothing.
  const ids = [...new Set(all)].toSorted()
  const start = Math.floor(ids.indexOf(id) / askedAtOnce) * askedAtOnce
  const known = useCall('cell_list', { ids: ids.slice(start, start + askedAtOnce) }).data
  const last = useRef<NonNullable<typeof known>['cells'][number]>(undefined)
  const found = known?.cells.find((one) => one.id === id) ?? last.current
  last.current = found
  return found ? <Text>{cellLabel(found)}</Text> : shortId(id)
}

/** The other end of an edge. */
export const CellLink = ({ id, all }: { id: string; all: readonly string[] }) => (
  <a href={to(`/cells/${id}`)}>
    <CellName id={id} all={all} />
  </a>
)
