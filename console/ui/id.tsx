import { words } from '../copy/common.ts'
import { Icon } from './icon.tsx'
import { toast } from './toast.tsx'

export const shortId = (id: string): string => (id.length > 12 ? `${id.slice(0, 4)}..${id.slice(-4)}` : id)

export async function copyText(text: string): Promise<void> {
  await navigator.clipboard.writeText(text)
  toast(words.copied)
}

/** A short form of an id; a click copies the whole. */
export const Id = ({ id }: { id: string }) => (
  <button
    type="button"
    class="id"
    title={id}
    aria-label={words.copy_id(shortId(id))}
    onClick={() => void copyText(id)}
  >
    {shortId(id)}
    <Icon name="copy" />
  </button>
)
