import { TextLink } from './text-link.tsx';

/** An operator's link to an account. */
export function AccountLink({ id }: { id: string }) {
  return (
    <TextLink to="/operator/accounts/$accountId" params={{ accountId: id }}>
      {id}
    </TextLink>
  );
}
