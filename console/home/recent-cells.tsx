import type { Output } from '../api/client.ts'
import { cellLabel } from '../copy/cells.ts'
import { to } from '../lib/router.ts'
import { Text } from '../ui/text.tsx'
import { Time } from '../ui/time.tsx'

type Cell = Output<'cell_list'>['cells'][number]

export const RecentCells = ({ cells }: { cells: readonly Cell[] }) => (
  <ul class="list recent">
    {cells.map((cell) => (
      <li key={cell.id}>
        <a class="grow" href={to(`/cells/${cell.id}`)}>
          <Text>{cellLabel(cell)}</Text>
        </a>
        <span class="soft small">{cell.kind && <Text>{cell.kind}</Text>}</span>
        <span class="soft small">
          <Time at={cell.updated_at ?? cell.created_at} />
        </span>
      </li>
    ))}
  </ul>
)
