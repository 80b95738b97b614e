import type { Output } from '../api/client.ts'
import { home } from '../copy/home.ts'
import { to } from '../lib/router.ts'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'

type Cell = Output<'cell_list'>['cells'][number]

const labelOf = ({ data, path }: Cell): string => {
  const { label } = data as { label?: unknown }
  return typeof label === 'string' && label.trim() ? label : (path ?? home.no_label)
}

export const RecentCells = ({ cells }: { cells: readonly Cell[] }) => (
  <ul class="list">
    {cells.map((cell) => (
      <li key={cell.id}>
        <a class="grow" href={to(`/cells/${cell.id}`)}>
          <Text>{labelOf(cell)}</Text>
        </a>
        <span class="soft small">{cell.kind && <Text>{cell.kind}</Text>}</span>
        <span class="soft small">
          <Time at={cell.updated_at ?? cell.created_at} />
        </span>
      </li>
    ))}
  </ul>
)
