import { audit } from '../copy/audit.ts'
import { to } from '../lib/router.ts'
import { shortId } from '../ui/id.tsx'
import { Text } from '../ui/text.tsx'
import { cellLabelOf } from './names.ts'

/** The label of a cell; its id if the reader may not see it, or while the label is loading. */
export function CellName({ id }: { id: string }) {
  const label = cellLabelOf(id).value
  return label ? <Text>{label}</Text> : audit.a_cell_of(shortId(id))
}

export const CellLink = ({ id }: { id: string }) => (
  <a class="over" href={to(`/cells/${id}`)}>
    <CellName id={id} />
  </a>
)
