import { useId } from 'preact/hooks'
import { ago, distance, fullTime, shortTime } from '../lib/time.ts'

/** How long ago, or the date. */
export const Time = ({ at }: { at: string }) => <Short at={at} text={ago(at)} whole={fullTime(at)} />

/** The same inside a link, which leads to the full record. */
export const TimeInLink = ({ at }: { at: string }) => (
  <time dateTime={at} title={fullTime(at)}>
    {ago(at)}
  </time>
)

/** When something was. */
export const Moment = ({ at }: { at: string }) => <time dateTime={at}>{shortTime(at)}</time>

/** When something ends: the date, followed by the distance. */
export const Until = ({ at }: { at: string }) => (
  <Short at={at} text={shortTime(at)} whole={`${distance(at)}, ${fullTime(at)}`} />
)

/** Shows the full time on hover, or on a press by key or finger. */
function Short({ at, text, whole }: { at: string; text: string; whole: string }) {
  const id = `time${useId()}`
  return (
    <>
      <button type="button" class="time" title={whole} popovertarget={id}>
        <time dateTime={at}>{text}</time>
      </button>
      <span id={id} popover="auto" class="tip">
        {whole}
      </span>
    </>
  )
}
