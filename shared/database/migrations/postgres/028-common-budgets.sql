-- Keys that were made by rotating one another spend one budget: budget_id is the id of the first. Null: never rotated.
ALTER TABLE api_keys ADD COLUMN budget_id TEXT COLLATE "C";

WITH RECURSIVE chain (id, first_id) AS (
  SELECT id, id FROM api_keys
  WHERE rotated_to IS NOT NULL AND id NOT IN (SELECT rotated_to FROM api_keys WHERE rotated_to IS NOT NULL)
  UNION
  SELECT api_keys.rotated_to, chain.first_id FROM chain JOIN api_keys ON api_keys.id = chain.id
  WHERE api_keys.rotated_to IS NOT NULL
)
UPDATE api_keys SET budget_id = chain.first_id FROM chain WHERE chain.id = api_keys.id;

-- Not by the process that rotates: the release before, which may run beside this one, knows nothing of it.
CREATE FUNCTION share_budget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE api_keys SET budget_id = coalesce(NEW.budget_id, NEW.id) WHERE id IN (NEW.id, NEW.rotated_to);
  RETURN NULL;
END
$$;
CREATE TRIGGER share_budget AFTER UPDATE OF rotated_to ON api_keys
  FOR EACH ROW WHEN (NEW.rotated_to IS NOT NULL) EXECUTE FUNCTION share_budget();
