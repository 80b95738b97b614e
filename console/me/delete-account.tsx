import { useCount } from '../api/query.ts'
import { useSend } from '../api/send.ts'
import { forgetSession, type Session, signedIn, tellTabs } from '../api/session.ts'
import { deletion } from '../copy/common.ts'
import { explain } from '../copy/errors.ts'
import { me } from '../copy/me.ts'
import { Counted, notCounted } from '../ui/counted.tsx'
import { Confirm } from '../ui/dialog.tsx'

/** Counts what ends first, and requires that the name is typed. */
export function DeleteAccount({ onClose }: { onClose(): void }) {
  const { username } = (signedIn.value as Session).account
  const preview = useCount('account_delete_preview', {})
  const remove = useSend('account_delete', {
    done: () => {
      tellTabs('signed_out')
      forgetSession()
    },
  })
  const refusal = preview.data?.refusal
  const why = refusal ? explain({ reason: refusal, data: {}, status: 409 }) : null
  return (
    <Confirm
      name={why ? null : username}
      title={me.delete_question(username)}
      verb={me.delete_verb(username)}
      onConfirm={() => void remove.send({})}
      onClose={onClose}
      of={remove}
      disabled={why ?? notCounted(preview)}
    >
      <Counted of={preview}>{({ counts }) => why ?? deletion.counted(username, counts)}</Counted>
    </Confirm>
  )
}
