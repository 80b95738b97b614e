import { signal } from '@preact/signals'
import { hasDrafts } from './draft.ts'

/** True: the server has another build of the console, and this page could not reload by itself. */
export const isOutdated = signal(false)

const own = document.querySelector<HTMLScriptElement>('script[type=module][src]')?.getAttribute('src') ?? ''

/** Whether the document that the server sends now names another script. */
async function hasOther(): Promise<boolean> {
  try {
    const answer = await fetch('/admin', { cache: 'no-cache', headers: { accept: 'text/html' } })
    const text = await answer.text()
    // A proxy may answer in its place.
    return answer.ok && text.includes('name="cellkeep"') && !text.includes(`"${own}"`)
  } catch {
    return false
  }
}

const typed = ':is(input:not([type=search], [type=checkbox], [type=radio]), textarea)'
/** Whether a reload would lose something: text, a dialog, or the answer to a change. */
const isInUse = (): boolean =>
  hasDrafts() ||
  document.querySelector('dialog[open], button[aria-busy=true]') !== null ||
  [...document.querySelectorAll<HTMLInputElement>(typed)].some(({ value }) => value !== '')

const left = 'cellkeep.left'
/** Each build is left once per tab, so that servers of two versions do not send a page to and fro. */
function reloadOnce(): boolean {
  try {
    const builds = (sessionStorage.getItem(left) ?? '').split(' ')
    if (builds.includes(own)) return false
    sessionStorage.setItem(left, [...builds, own].join(' ').trim())
  } catch {
    return false
  }
  location.reload()
  return true
}

/** Reloads the page if the server has another build, unless that would lose something; true: it has, and the page stays. */
export const leaveOldBuild = async (): Promise<boolean> => (await hasOther()) && (isInUse() || !reloadOnce())

/** Called when the server is back, and when a part of this page could not be loaded. */
export async function checkBuild(): Promise<void> {
  isOutdated.value = await leaveOldBuild()
}
