import { words } from '../copy/common.ts'
import { Icon } from './icon.tsx'
import { toast } from './toast.tsx'

export const shortId = (id: string): string => (id.length > 12 ? `${id.slice(0, 4)}..${id.slice(-4)}` : id)

/** Over plain http there is no clipboard API, and elsewhere the browser may refuse it. */
export async function copyText(text: string): Promise<void> {
  const isWritten = navigator.clipboard?.writeText(text).then(
    () => true,
    () => copyByEvent(text),
  )
  toast((await (isWritten ?? copyByEvent(text))) ? words.copied : words.not_copied)
}

/** Lets the browser copy the selection, and replaces it by this text. */
function copyByEvent(text: string): boolean {
  let isCopied = false
  const put = (event: ClipboardEvent): void => {
    event.preventDefault()
    event.stopImmediatePropagation()
    event.clipboardData?.setData('text/plain', text)
    isCopied = true
  }
  addEventListener('copy', put, { capture: true })
  document.execCommand('copy')
  removeEventListener('copy', put, { capture: true })
  return isCopied
}

/** A short form of an id; a click copies the full id. */
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
