import { words } from '../copy/common.ts'
import { shortId } from '../ui/id.tsx'
import { Text } from '../ui/text.tsx'
import { labelOf } from './names.ts'

/** The name of an actor, or a note that it was removed. */
export function ActorName({ id }: { id: string | null }) {
  if (id === null) return <span class="soft">{words.removed_actor}</span>
  const label = labelOf(id).value
  if (label === undefined) return <span class="soft">{shortId(id)}</span>
  if (label === null) return <span class="soft">{`${words.removed_actor} ${shortId(id)}`}</span>
  const { username, display_name } = label
  return <Text>{display_name && display_name !== username ? `${display_name} (${username})` : username}</Text>
}
