import { cells } from '../copy/cells.ts'
import type { Change, Json } from '../lib/json.ts'
import { Badge } from '../ui/note.tsx'
import { Text } from '../ui/text.tsx'

/** What a save would change, place by place. */
export const ChangeList = ({ changes }: { changes: readonly Change[] }) => (
  <section class="section">
    <h2>{cells.changes(changes.length)}</h2>
    <ul class="changes">
      {changes.map((one) => (
        <li key={one.pointer}>
          <div class="row">
            <code>
              <Text>{one.pointer || '/'}</Text>
            </code>
            <Kind change={one} />
          </div>
          {one.before !== undefined && (
            <pre class="is-before">
              <Value of={one.before} />
            </pre>
          )}
          {one.after !== undefined && (
            <pre class="is-after">
              <Value of={one.after} />
            </pre>
          )}
        </li>
      ))}
    </ul>
  </section>
)

function Kind({ change: { before, after } }: { change: Change }) {
  if (before === undefined) return <Badge kind="ok">{cells.added}</Badge>
  return after === undefined ? (
    <Badge kind="bad">{cells.removed}</Badge>
  ) : (
    <Badge kind="accent">{cells.replaced}</Badge>
  )
}

const longest = 2000

/** A value as JSON, cut if it is long. */
export function Value({ of }: { of: Json | undefined }) {
  if (of === undefined) return <span class="soft">{cells.absent}</span>
  const text = JSON.stringify(of, null, 2)
  return <Text long>{text.length > longest ? `${text.slice(0, longest)} …` : text}</Text>
}
