import { Note } from './note.tsx'
import { Words } from './words.tsx'

/** Why the last attempt was refused; announced as soon as it appears. */
export const Fault = ({ text }: { text: string | null | undefined }) => (
  <div role="alert" hidden={!text}>
    {text && (
      <Note kind="bad">
        <Words>{text}</Words>
      </Note>
    )}
  </div>
)
