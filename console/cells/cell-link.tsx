import { useCall } from '../api/query.ts'
import { cellLabel } from '../copy/cells.ts'
import { to } from '../lib/router.ts'
import { shortId } from '../ui/id.tsx'
import { Text } from '../ui/text.tsx'

/** The other end of an edge; all of a list are asked for at once. */
export function CellLink({ id, all }: { id: string; all: readonly string[] }) {
  const ids = [...new Set(all)].slice(0, 200)
  const found = useCall('cell_list', { ids }).data?.cells.find((one) => one.id === id)
  return <a href={to(`/cells/${id}`)}>{found ? <Text>{cellLabel(found)}</Text> : shortId(id)}</a>
}
